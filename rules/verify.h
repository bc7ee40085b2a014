// Proof of rules by exact arithmetic over random shapes and attributes (DESIGN section 6): a prime
// field with division as inverse, exact rationals where order matters, uninterpreted functions for
// the rest, and a float64 check. By Schwartz-Zippel a wrong polynomial identity survives one
// instance with probability at most degree / 2^61.
#pragma once

#include <string>
#include <vector>

#include "rules/rule_set.h"

namespace ag {

struct VerifyOptions {
  int instances_min = 200;  // Distinct well-typed instances per rule.
  uint64_t seed = 1;
};

struct VerifyReport {
  std::string rule;
  bool proved = false;
  int instances = 0;
  std::vector<std::pair<std::string, int>>
      classes;             // Instance classes (group > 1, ...) and how many.
  std::string arithmetic;  // "field", "rationals", "float64".
  std::string
      counter_example;  // The smallest found, as text-form graphs with values; "" when proved.
  double float_error_max = 0;  // Largest relative difference of the float check.
};

VerifyReport Verify(const Rule& rule, const VerifyOptions& options = {});

// True when the shipped verdict file (rules/verified.txt, compiled in) holds the rule's digest.
bool IsShippedVerdict(const Rule& rule);

// Refuses (kFailedPrecondition, with the counter-example) when a rule is neither in the shipped
// verdicts nor proved now.
Status RequireVerified(const RuleSet& rules, const VerifyOptions& options = {});

}  // namespace ag
