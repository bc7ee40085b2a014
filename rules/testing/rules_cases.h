// One firing and one non-firing case of every built-in rule, in text form, for tests. Constants.
#pragma once

#include <string>
#include <vector>

namespace ag {

// "before" and "after" are statements after the inputs, separated by ";". An empty "after": the
// rule does not fire. "@p" stands for conv attributes: strides and dilations 1, pads p.
struct RuleCase {
  const char* rule;
  const char* inputs;
  const char* before;
  const char* after;
};

// Returns the whole text of one side.
std::string CaseText(const RuleCase& c, const char* side);

extern const std::vector<RuleCase> kSearchCases;
extern const std::vector<RuleCase> kMovementCases;  // Attention, reductions, cuts, transposes.
extern const std::vector<RuleCase> kCleanUpCases;
extern const std::vector<RuleCase>
    kWindowCases;  // Of search and clean-up rules on convolutions and pools.
extern const std::vector<RuleCase> kMovementCleanUpCases;

}  // namespace ag
