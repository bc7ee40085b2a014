// One firing and one non-firing case of every shipped rule, in text form; shared by the tests.
#pragma once

#include <string>
#include <vector>

namespace ag {

// "before" and "after" are statements, separated by ";", after the inputs; an empty "after" means
// that the rule does not fire. "@p" stands for conv attributes: strides and dilations 1, pads p.
struct RuleCase {
  const char* rule;
  const char* inputs;
  const char* before;
  const char* after;
};

// The whole text of one side.
std::string CaseText(const RuleCase& c, const char* side);

extern const std::vector<RuleCase> kSearchCases;
extern const std::vector<RuleCase> kMovementCases;  // Attention, reductions, cuts, transposes.
extern const std::vector<RuleCase> kCleanUpCases;
extern const std::vector<RuleCase> kWindowCases;  // Of both kinds, about convolutions and pools.
extern const std::vector<RuleCase> kMovementCleanUpCases;

}  // namespace ag
