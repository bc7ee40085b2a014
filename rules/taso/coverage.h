// What our rules make of TASO's: each of them is implied by ours, repaired by a guard that ours
// carries, or noise.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "rules/rule_set.h"
#include "rules/taso/format.h"

namespace ag {

enum class TasoVerdict : uint8_t { kImplied, kRepaired, kNoise, kUnknown };
std::string_view TasoVerdictName(TasoVerdict verdict);

struct TasoCoverageOptions {
  int steps_max = 4;    // Of ours, one after another.
  int instances = 250;  // Distinct well-typed shape assignments on which the rule is tested.
  int reached_min = 6;  // On how many of those where it holds ours must get there,
  int tries = 24;       // of so many.
  uint64_t seed = 1;
};

struct TasoCoverage {
  std::string rule;  // Its name, and its text in one line.
  std::string text;
  TasoVerdict verdict = TasoVerdict::kUnknown;
  std::vector<std::string> path;  // The most steps that ours took, in order.
  bool regrouped = false;         // Sums or products came out in another grouping.
  std::string guard;              // Repaired: what the rules of the path ask for.
  // Repaired: the shapes of the smallest case in which it is wrong, and what differs there.
  std::string counter_example, difference;
  std::string reason;  // Noise and unknown: why.
  int tested = 0;      // Shape assignments on which both sides are well-typed ...
  int held = 0;        // ... and equal ...
  int tried = 0;       // ... and of these some, evenly over all, were tried:
  int reached = 0;     // ours got from one side to the other,
  std::string missed;  // but not on these shapes, which their guards leave out; "": on all.
};

// "" unless the rule cannot be of use whatever shapes it meets: dead operators, roots that share no
// tensor, one tensor as input and as weights, a variable that the source does not bind, no change.
std::string TasoNoiseOf(const TasoRule& rule);

// Implied: no shape assignment was found in which both sides are well-typed and differ, and ours
// rewrite the source into the target on at least reached_min of those tried. Repaired: one was
// found, and ours get there where the rule is right. Deterministic by options.seed.
TasoCoverage CoverTasoRule(const TasoRule& rule, const RuleSet& rules,
                           const TasoCoverageOptions& options = {});

// "3 implied, 2 repaired, 1 noise, 0 unknown".
std::string TasoCoverageSummary(const std::vector<TasoCoverage>& coverage);

// One rule in two or more lines, for people.
std::string FormatTasoCoverage(const TasoCoverage& coverage);

// The section of docs/rules.md.
std::string TasoCoverageTable(const std::vector<TasoCoverage>& coverage);

}  // namespace ag
