#include "lab/taso/coverage.h"

#include <algorithm>
#include <optional>
#include <set>

#include "lab/taso/reach.h"
#include "lab/taso/sample.h"
#include "rules/verify/compare.h"

namespace ag {
namespace {

// Most samples of most rules fit; the rarest of the published rules fits once in 300 samples.
constexpr int kSamplesPerInstance = 40;
// For a rule that is wrong for some shapes: the number of cases in which it holds that are tried
// before ours count as not leading there.
constexpr int kTriesWhenWrong = 40;

class Coverer {
 public:
  Coverer(const TasoRule& rule, const RuleSet& rules, const TasoCoverageOptions& options)
      : rule_(rule), rules_(rules), options_(options) {
    out_.rule = rule.name;
    out_.text = FormatTasoRule(rule);
  }

  TasoCoverage Run() {
    out_.reason = TasoNoiseOf(rule_);
    if (out_.reason.empty()) Test();
    if (!out_.reason.empty()) {
      out_.verdict = TasoVerdict::kNoise;
    } else {
      Reach();
    }
    return std::move(out_);
  }

 private:
  void Test() {
    std::set<std::string> seen;
    const int samples = options_.instances * kSamplesPerInstance;
    int typed = 0;
    for (int sample = 0; sample < samples && out_.tested < options_.instances; ++sample) {
      const uint64_t seed = options_.seed * 0x9e3779b97f4a7c15ull + static_cast<uint64_t>(sample);
      StatusOr<TasoInstance> instance = SampleTasoInstance(rule_, seed);
      if (!instance.ok()) {
        source_error_ = Message(instance.status());
        continue;
      }
      ++typed;
      if (!instance->target.has_value()) {
        target_error_ = instance->target_error;
        continue;
      }
      const std::string key = fmt::format("{} {}", instance->shapes, instance->epsilon);
      if (seen.insert(key).second) Compare(*std::move(instance));
    }
    if (typed == 0) out_.reason = "ill-typed: the source fits no shapes: " + source_error_;
    if (typed > 0 && out_.tested == 0) {
      out_.reason = "ill-typed: the target fits no shapes: " + target_error_;
    }
  }

  void Compare(TasoInstance instance) {
    ++out_.tested;
    const std::string difference = Difference(instance);
    if (difference.empty()) {
      ++out_.held;
      held_.push_back(std::move(instance));
      return;
    }
    if (wrong_elements_ >= 0 && instance.elements >= wrong_elements_) return;
    wrong_elements_ = instance.elements;
    out_.counter_example = instance.shapes;
    if (instance.epsilon > 0) {
      out_.counter_example += fmt::format(" epsilon={}", instance.epsilon);
    }
    out_.difference = difference;
  }

  // Returns "" when both sides compute the same on random values. Even seeds sample positive
  // values, which the variances of batch-norms need.
  std::string Difference(const TasoInstance& instance) const {
    const auto& a = instance.source.outputs();
    const auto& b = instance.target->outputs();
    for (size_t i = 0; i < a.size(); ++i) {
      const TensorType& before = instance.source.type(a[i].edge);
      const TensorType& after = instance.target->type(b[i].edge);
      if (before == after) continue;
      return fmt::format("output {} has shape {} before, {} after", i, ShapeToString(before.shape),
                         ShapeToString(after.shape));
    }
    const uint64_t seed = instance.epsilon > 0 ? 2 : 1 + static_cast<uint64_t>(out_.tested % 2);
    const Comparison comparison = ag::Compare(instance.source, *instance.target, seed);
    if (comparison.computed && comparison.equal) return "";
    return comparison.difference.substr(0, comparison.difference.find('\n'));
  }

  void Reach() {
    const bool wrong = wrong_elements_ >= 0;
    const int held = static_cast<int>(held_.size());
    const int wanted = std::min(options_.reached_min, held);
    const int tries = std::min(wrong ? kTriesWhenWrong : options_.tries, held);
    for (; out_.tried < tries; ++out_.tried) {
      const TasoInstance& instance = held_[static_cast<size_t>(held / tries * out_.tried)];
      if (ReachOne(instance)) {
        ++out_.reached;
      } else {
        out_.missed = instance.shapes;
        if (out_.tried == options_.tries && out_.reached == 0) break;
      }
      if (wrong && out_.reached == wanted) break;
    }
    if (held == 0) {
      out_.reason =
          fmt::format("wrong on all shapes, as {}: {}", out_.counter_example, out_.difference);
      return;
    }
    if (out_.reached < wanted) {
      out_.reason = fmt::format("no {} steps of ours on {}", options_.steps_max, out_.missed);
      return;
    }
    out_.verdict = wrong ? TasoVerdict::kRepaired : TasoVerdict::kImplied;
    if (wrong || !out_.missed.empty()) out_.guard = GuardOf();
  }

  bool ReachOne(const TasoInstance& instance) {
    const ReachOptions options{.steps_max = options_.steps_max};
    std::optional<ReachPath> path;
    if (out_.reached > 0) {
      path = FindReachPath(instance.source, *instance.target, Used(), options);
    }
    if (!path) path = FindReachPath(instance.source, *instance.target, rules_, options);
    if (!path) return false;
    out_.regrouped |= path->regrouped;
    if (path->rules.size() > out_.path.size()) out_.path = path->rules;
    return true;
  }

  // Returns the rules of the path only: most shapes take the same steps.
  RuleSet Used() const {
    std::vector<std::string> others;
    for (const Rule& rule : rules_.rules()) {
      if (std::find(out_.path.begin(), out_.path.end(), rule.name) == out_.path.end()) {
        others.push_back(rule.name);
      }
    }
    return rules_.Without(others, /*strict=*/false);
  }

  std::string GuardOf() const {
    std::string text;
    std::set<std::string> seen;
    for (const std::string& name : out_.path) {
      if (!seen.insert(name).second) continue;
      const Rule& rule = *rules_.Find(name);
      std::vector<std::string> guards;
      const size_t arrow = rule.text.find(" => ");
      const std::string source = rule.text.substr(0, arrow);
      if (source.find("group=1") != std::string::npos) guards.push_back("group=1");
      const size_t condition = rule.text.find(" if ", arrow);
      if (condition != std::string::npos) guards.push_back(rule.text.substr(condition + 4));
      if (guards.empty()) continue;
      text += fmt::format("{}{} if {}", text.empty() ? "" : "; ", name, fmt::join(guards, ", "));
    }
    return text;
  }

  const TasoRule& rule_;
  const RuleSet& rules_;
  const TasoCoverageOptions& options_;
  TasoCoverage out_;
  std::vector<TasoInstance> held_;
  std::string source_error_, target_error_;
  int64_t wrong_elements_ = -1;
};

}  // namespace

TasoCoverage CoverTasoRule(const TasoRule& rule, const RuleSet& rules,
                           const TasoCoverageOptions& options) {
  return Coverer(rule, rules, options).Run();
}

}  // namespace ag
