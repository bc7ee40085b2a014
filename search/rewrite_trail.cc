#include "search/rewrite_trail.h"

#include <algorithm>

namespace ag {

int RewriteTrail::Add(int parent, const Rule* rule, double gain_ns) {
  AG_CHECK(parent >= 0 && parent < static_cast<int>(steps_.size()));
  steps_.push_back({parent, rule, gain_ns});
  return static_cast<int>(steps_.size()) - 1;
}

std::vector<AppliedRewrite> RewriteTrail::Path(int step) const {
  std::vector<int> path;
  for (; step != kInput; step = steps_[step].parent) path.push_back(step);
  std::ranges::reverse(path);
  std::vector<AppliedRewrite> rewrites;
  for (const int i : path) {
    const auto it = std::ranges::find(rewrites, steps_[i].rule->name, &AppliedRewrite::rule);
    AppliedRewrite& rewrite =
        it == rewrites.end() ? rewrites.emplace_back(AppliedRewrite{steps_[i].rule->name}) : *it;
    ++rewrite.count;
    rewrite.gain_ns += steps_[i].gain_ns;
  }
  return rewrites;
}

}  // namespace ag
