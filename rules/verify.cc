#include "rules/verify.h"

#include <algorithm>
#include <map>
#include <set>

#include "graph/text_form.h"
#include "rules/applier.h"
#include "rules/compare.h"
#include "rules/instance.h"
#include "rules/matcher.h"

namespace ag {
namespace {

// An instance is drawn in tens of microseconds and most draws fit; a rule that has not met its
// count by then has guards that no draw satisfies, which is a fault of the rule or of the
// generator.
constexpr int kDrawsPerInstance = 2000;
// How many more instances are searched for a smaller counter-example.
constexpr int kShrinkDraws = 2000;

struct Refusal {
  std::string text;
  int64_t elements = 0;
};

class Verifier {
 public:
  Verifier(const Rule& rule, const VerifyOptions& options) : rule_(rule), options_(options) {}

  VerifyReport Run() {
    report_.rule = rule_.name;
    const int draws_max = options_.instances_min * kDrawsPerInstance;
    int shrinking = 0;
    for (int draw = 0; draw < draws_max && shrinking < kShrinkDraws; ++draw) {
      if (refusal_.has_value()) ++shrinking;
      if (!refusal_.has_value() && report_.instances >= options_.instances_min) break;
      // From small to large, again and again; only small ones once a counter-example is known.
      const int size = refusal_.has_value() ? 2 : 2 + draw % 4;
      Try(Mix(static_cast<uint64_t>(draw)), size);
    }
    return Finish();
  }

 private:
  uint64_t Mix(uint64_t draw) const { return options_.seed * 0x9e3779b97f4a7c15ull + draw; }

  void Try(uint64_t seed, int size) {
    const std::optional<Instance> instance = DrawInstance(*rule_.pattern, seed, size);
    if (!instance.has_value() || instance->elements > 20000) return;
    if (refusal_.has_value() && instance->elements >= refusal_->elements) return;
    const auto matches =
        FindMatches(instance->graph, NodeIndex(instance->graph), *rule_.pattern, 2);
    if (matches.empty() || !seen_.insert(instance->graph.digest()).second) return;
    bool compared = false;
    for (const Rewrite::Bindings& match : matches) compared |= TryMatch(*instance, match, seed);
    if (!compared) return;
    ++report_.instances;
    for (const std::string& name : instance->classes) ++classes_[name];
  }

  bool TryMatch(const Instance& instance, const Rewrite::Bindings& match, uint64_t seed) {
    const Graph& before = instance.graph;
    GraphBuilder builder(before);
    const Status applied = ApplyTo(&builder, before, *rule_.pattern, match);
    if (!applied.ok()) {
      Refuse(instance,
             fmt::format("{}=> does not fit here: {}", FormatGraph(before), Message(applied)));
      return true;
    }
    const StatusOr<Graph> after = builder.Build();
    if (!after.ok()) return false;  // A cycle: Apply refuses it too.
    const Comparison comparison = Compare(before, *after, seed);
    if (!comparison.computed) return false;
    report_.float_error_max = std::max(report_.float_error_max, comparison.float_error);
    weakest_ = std::max(weakest_, comparison.arithmetic);
    const bool inexact = rule_.rule_class == RuleClass::kExact && comparison.float_error > 0;
    if (comparison.equal && !inexact) return true;
    Refuse(instance, fmt::format("{}=>\n{}{}", FormatGraph(before), FormatGraph(*after),
                                 comparison.equal ? "equal in real arithmetic, but not exact: " +
                                                        comparison.difference
                                                  : comparison.difference));
    return true;
  }

  void Refuse(const Instance& instance, std::string text) {
    if (refusal_.has_value() && instance.elements >= refusal_->elements) return;
    refusal_ = Refusal{std::move(text), instance.elements};
  }

  VerifyReport Finish() {
    report_.classes.assign(classes_.begin(), classes_.end());
    report_.arithmetic = ArithmeticName(weakest_);
    if (refusal_.has_value()) {
      report_.counter_example = refusal_->text;
    } else if (report_.instances < options_.instances_min) {
      report_.counter_example = fmt::format("only {} of {} instances could be drawn",
                                            report_.instances, options_.instances_min);
    }
    report_.proved = report_.counter_example.empty();
    return std::move(report_);
  }

  const Rule& rule_;
  const VerifyOptions& options_;
  VerifyReport report_;
  std::set<Digest> seen_;
  std::map<std::string, int> classes_;
  std::optional<Refusal> refusal_;
  Arithmetic weakest_ = Arithmetic::kField;
};

}  // namespace

VerifyReport Verify(const Rule& rule, const VerifyOptions& options) {
  return Verifier(rule, options).Run();
}

Status RequireVerified(const RuleSet& rules, const VerifyOptions& options) {
  for (const Rule& rule : rules.rules()) {
    if (IsShippedVerdict(rule)) continue;
    const VerifyReport report = Verify(rule, options);
    if (report.proved) continue;
    return Err(StatusCode::kFailedPrecondition, "{}:{}: rule '{}' is not proved:\n{}", rule.file,
               rule.line, rule.name, report.counter_example);
  }
  return OkStatus();
}

}  // namespace ag
