// The coverage of TASO's rules by ours: each is implied by ours, repaired by a guard of ours, or
// noise. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "lab/taso/format.h"
#include "rules/language/rule_set.h"

namespace ag {

enum class TasoVerdict : uint8_t { kImplied, kRepaired, kNoise, kUnknown };
std::string_view TasoVerdictName(TasoVerdict verdict);

struct TasoCoverageOptions {
  int steps_max = 4;    // Steps of our rules, one after another.
  int instances = 250;  // Distinct well-typed shape assignments on which the rule is tested.
  int reached_min = 6;  // The least number of tried assignments that ours must reach.
  int tries = 24;       // The number of assignments that are tried.
  uint64_t seed = 1;
};

struct TasoCoverage {
  std::string rule;  // The name.
  // The rule on one line.
  std::string text;
  TasoVerdict verdict = TasoVerdict::kUnknown;
  std::vector<std::string> path;  // The longest path of our rules, in order.
  bool regrouped = false;         // Sums or products have another grouping in the end.
  std::string guard;              // Repaired: the guards of the rules of the path.
  // Repaired: the shapes of the smallest case in which it is wrong, and the difference there.
  std::string counter_example, difference;
  std::string reason;  // Noise and unknown: the reason.
  int tested = 0;      // Shape assignments in which both sides are well-typed.
  int held = 0;        // Those of `tested` in which both sides are equal.
  int tried = 0;       // Those of `held` that were tried, spread evenly.
  int reached = 0;     // Those of `tried` in which ours lead from one side to the other.
  std::string missed;  // Tried shapes that our guards exclude; "": none.
};

// Returns "" or why the rule is useless for all shapes: dead operators, roots without a shared
// tensor, a tensor that is both input and weights, a variable that the source does not bind, no
// change.
std::string TasoNoiseOf(const TasoRule& rule);

// Returns the coverage. Implied: no shape assignment was found in which both sides are well-typed
// and differ, and ours rewrite the source into the target on at least reached_min of those tried.
// Repaired: one was found, and ours lead there where the rule is right. Deterministic by
// options.seed.
TasoCoverage CoverTasoRule(const TasoRule& rule, const RuleSet& rules,
                           const TasoCoverageOptions& options = {});

// Returns "3 implied, 2 repaired, 1 noise, 0 unknown".
std::string TasoCoverageSummary(const std::vector<TasoCoverage>& coverage);

// Returns a rule's coverage in two or more lines, for people.
std::string FormatTasoCoverage(const TasoCoverage& coverage);

// Returns the section of docs/rules.md.
std::string TasoCoverageTable(const std::vector<TasoCoverage>& coverage);

}  // namespace ag
