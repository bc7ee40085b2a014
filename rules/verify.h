// Proof of rules by exact arithmetic over random shapes and attributes (DESIGN section 6): a prime
// field with division as inverse, exact rationals where order matters, uninterpreted functions for
// the rest, and a float64 check. By Schwartz-Zippel a wrong polynomial identity survives one
// instance with probability at most degree / 2^61.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "rules/rule_set.h"

namespace ag {

// Names what a verdict means: part of every key under which one is remembered. Raised when the
// verifier or the meaning of an operator changes.
inline constexpr int kVerifierVersion = 5;

struct VerifyOptions {
  int instances_min = 200;  // Distinct well-typed instances per rule.
  uint64_t seed = 1;
  // Draws over which a class of instance that applies must turn up (or prove to be ruled out by
  // the guards); beyond them the rule is refused.
  int class_draws_max = 60'000;
  // Draws after which a rule that has not met its instances is refused; 0: 2000 for each instance.
  int scarce_draws_max = 0;
  // Whether a refusal comes with the smallest case that can be found; else it says "differs".
  bool explain = true;
};

struct VerifyReport {
  std::string rule;
  bool proved = false;
  int instances = 0;
  // Classes of instance (group > 1, ...) and in how many instances the rule matched one.
  std::vector<std::pair<std::string, int>> classes;
  // Classes that the operators would admit and the guards do not: and how many draws of that class
  // matched but for the guards, none of which passed them.
  std::vector<std::pair<std::string, int>> ruled_out;
  std::string arithmetic;  // The weakest needed: "field", "rationals", "float64".
  // Why it is refused: the smallest case found as text-form graphs with values, or what could not
  // be drawn; "" when proved.
  std::string counter_example;
  bool too_few_cases = false;     // Refused because cases were wanting, not because one was wrong.
  bool ill_typed = false;         // Refused because its target has another type than its source.
  double float_error_max = 0;     // Largest relative difference of the float check.
  double constant_error_max = 0;  // The same with the rule's approximate constants off by as much
                                  // as the matcher takes for equal; 0: it has none.
};

// Pure: the same rule and options give the same report.
VerifyReport Verify(const Rule& rule, const VerifyOptions& options = {});

// Verifies the rules on `jobs` threads. `done` is called for each, in the order of `rules`, from
// one thread at a time; when it returns false the rest is given up.
void VerifyAll(const std::vector<const Rule*>& rules, const VerifyOptions& options, int jobs,
               const std::function<bool(const Rule&, VerifyReport)>& done);

// Draws a few small cases of every rule. kInvalidArgument "file:line:column: the target has type
// ...", the line, a caret and a case, when a right side has another type in more than a quarter
// of them. (One that has so now and then is left to Verify.)
Status CheckTypes(const std::vector<const Rule*>& rules);

// "field, 200 instances" when the shipped verdict file (rules/verified.txt, compiled in) holds the
// rule's digest; nullopt when it does not.
std::optional<std::string> ShippedProof(const Rule& rule);

// What a set must pass before anything is rewritten by it. kInvalidArgument: CheckTypes.
// kFailedPrecondition, with the counter-example: a rule is neither in the shipped verdicts nor
// proved now.
Status RequireVerified(const RuleSet& rules, const VerifyOptions& options = {});

}  // namespace ag
