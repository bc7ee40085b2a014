#include "search/rewrite_trail.h"

#include <algorithm>

namespace ag {

int RewriteTrail::Add(int parent, RewriteStep made_by) {
  AG_CHECK(parent >= 0 && parent < static_cast<int>(steps_.size()));
  steps_.push_back({parent, std::move(made_by)});
  return static_cast<int>(steps_.size()) - 1;
}

std::vector<int> RewriteTrail::StepsTo(int step) const {
  std::vector<int> path;
  for (; step != kInput; step = steps_[step].parent) path.push_back(step);
  std::ranges::reverse(path);
  return path;
}

std::vector<AppliedRewrite> AppliedOf(std::span<const RewriteStep> steps) {
  std::vector<AppliedRewrite> rewrites;
  for (const RewriteStep& step : steps) {
    const std::string& rule = step.rewrite.rule->name;
    const auto it = std::ranges::find(rewrites, rule, &AppliedRewrite::rule);
    AppliedRewrite& rewrite =
        it == rewrites.end() ? rewrites.emplace_back(AppliedRewrite{rule}) : *it;
    ++rewrite.count;
    rewrite.gain_ns += step.gain_ns;
  }
  return rewrites;
}

std::vector<RewriteStep> RewriteTrail::Steps(int step) const {
  std::vector<RewriteStep> rewrites;
  for (const int i : StepsTo(step)) rewrites.push_back(steps_[i].made_by);
  return rewrites;
}

}  // namespace ag
