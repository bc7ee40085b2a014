#include "rules/verify/trial.h"

#include <algorithm>

#include "graph/text_form.h"
#include "rules/match/applier.h"
#include "rules/match/matcher.h"
#include "rules/verify/instance_classes.h"

namespace ag {
namespace {

// A k-ary rule is tried on the largest match and on this many smaller ones.
constexpr int kSubsets = 2;

void Refuse(Trial::Outcome outcome, std::string text, Trial* trial) {
  trial->outcome = outcome;
  trial->text = std::move(text);
}

std::string BothSides(const Graph& before, const Graph& after, std::string_view why) {
  return fmt::format("{}=>\n{}{}", FormatGraph(before), FormatGraph(after), why);
}

void CompareSides(const Rule& rule, const Graph& before, const Graph& after,
                  const CompareOptions& options, Trial* trial) {
  const Comparison comparison = Compare(before, after, options);
  if (!comparison.computed) return;
  trial->float_error = std::max(trial->float_error, comparison.float_error);
  trial->arithmetic = std::max(trial->arithmetic, comparison.arithmetic);
  if (!comparison.equal) {
    return Refuse(Trial::Outcome::kDiffers, BothSides(before, after, comparison.difference), trial);
  }
  trial->outcome = Trial::Outcome::kHolds;
  if (rule.rule_class != RuleClass::kExact) return;
  if (comparison.float_error > 0) {
    return Refuse(Trial::Outcome::kDiffers,
                  BothSides(before, after,
                            "equal in real arithmetic, but not exact: " + comparison.difference),
                  trial);
  }
  CompareOptions non_finite = options;
  non_finite.values = Values::kNonFinite;
  const Comparison special = Compare(before, after, non_finite);
  if (!special.computed || special.float_error == 0) return;
  Refuse(
      Trial::Outcome::kDiffers,
      BothSides(before, after, "equal of numbers, but not of Inf and NaN: " + special.difference),
      trial);
}

void TryMatch(const Rule& rule, const Graph& before, const Bindings& match,
              const CompareOptions& options, Trial* trial) {
  GraphBuilder builder(before);
  const Status applied = ApplyTo(&builder, before, *rule.pattern, match);
  if (!applied.ok()) {
    trial->what = Message(applied);
    return Refuse(Trial::Outcome::kIllTyped,
                  fmt::format("{}=> does not fit here: {}\n", FormatGraph(before), trial->what),
                  trial);
  }
  const StatusOr<Graph> after = builder.Build();
  if (after.ok()) CompareSides(rule, before, *after, options, trial);  // Otherwise it is a cycle.
}

}  // namespace

Trial TryRule(const Rule& rule, const Graph& before, const CompareOptions& options) {
  Trial trial;
  for (const auto& match : FindMatches(before, NodeIndex(before), *rule.pattern, kSubsets)) {
    if (trial.outcome == Trial::Outcome::kNoMatch) trial.outcome = Trial::Outcome::kUndecided;
    trial.classes.merge(ClassesOf(before, match.nodes));
    TryMatch(rule, before, match, options, &trial);
    if (trial.refused()) break;
  }
  return trial;
}

}  // namespace ag
