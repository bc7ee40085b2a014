// Proofs of rules by exact arithmetic over random shapes and attributes (docs/design.md, Rules): a
// prime field with division as inverse, exact rationals where order matters, uninterpreted
// functions for other operators, and a float64 check. By Schwartz-Zippel a wrong polynomial
// identity survives one instance with a probability of at most degree / 2^61. Pure functions;
// VerifyAll makes its own threads.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "rules/language/rule_set.h"

namespace ag {

// The meaning of a verdict, part of every key under which one is stored. Raised when the verifier
// or the meaning of an operator changes.
inline constexpr int kVerifierVersion = 5;

struct VerifyOptions {
  int instances_min = 200;  // Distinct well-typed instances per rule.
  uint64_t seed = 1;
  // Samples in which each class of instance that applies must come up, or prove to be excluded by
  // the guards; after them the rule is refused.
  int class_samples_max = 60'000;
  // Samples after which a rule with too few instances is refused; 0: 2000 for each instance.
  int scarce_samples_max = 0;
  // Whether a refusal has the smallest case that was found; else it says "differs".
  bool explain = true;
  // Asked between samples, by every thread; null: never. Once true it stays true, and what is in
  // hand is given up.
  std::function<bool()> stop = nullptr;
};

struct VerifyReport {
  std::string rule;
  bool proved = false;
  bool stopped = false;  // VerifyOptions::stop ended it: it is neither proved nor refused.
  int instances = 0;
  // Classes of instance (group > 1, ...), with the number of instances in which the rule matched
  // one.
  std::vector<std::pair<std::string, int>> classes;
  // Classes that the operators allow and the guards exclude, with the number of samples of that
  // class that match without the guards; none of these passed the guards.
  std::vector<std::pair<std::string, int>> ruled_out;
  std::string arithmetic;  // The weakest one needed: "field", "rationals", "float64".
  // Why it is refused: the smallest case found as graphs in text form with values, or what could
  // not be sampled; "": proved.
  std::string counter_example;
  bool too_few_cases = false;  // Refused because of too few cases, not because of a wrong one.
  bool ill_typed = false;      // Refused because the target's type differs from the source's.
  double float_error_max = 0;  // Largest relative difference of the float check.
  // The same when the rule's approximate constants have the largest error that the matcher accepts;
  // 0: it has no such constants.
  double constant_error_max = 0;
};

// Verifies one rule. The same rule and options give the same report.
VerifyReport Verify(const Rule& rule, const VerifyOptions& options = {});

// Verifies the rules on `jobs` threads. Calls `done` for each, in the order of `rules`, by one
// thread at a time; when it returns false, or VerifyOptions::stop true, the others are skipped.
void VerifyAll(const std::vector<const Rule*>& rules, const VerifyOptions& options, int jobs,
               const std::function<bool(const Rule&, VerifyReport)>& done);

// Samples a few small cases of every rule. kInvalidArgument "file:line:column: the target has type
// ...", with the line, a caret and a case: the right side has another type in more than a quarter
// of them. Verify finds rarer cases.
Status CheckTypes(const std::vector<const Rule*>& rules);

// Checks a set before anything is rewritten by it. kInvalidArgument: as CheckTypes.
// kFailedPrecondition, with the counter-example: a rule is not in the built-in verdicts and was not
// proved now. kCancelled: VerifyOptions::stop.
Status RequireVerified(const RuleSet& rules, const VerifyOptions& options = {});

}  // namespace ag
