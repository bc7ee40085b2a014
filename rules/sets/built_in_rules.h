// The rules of this build, rules/sets/*.rules, and their proofs, rules/sets/verified.txt. Both are
// compiled in and loaded once. Thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "rules/language/rule_set.h"

namespace ag {

// Returns the built-in rules. A bad rule among them is a bug and stops the process.
const RuleSet& BuiltInRules();

// Returns the built-in rules and those of a text besides. kInvalidArgument: as RuleSet::Parse and
// RuleSet::Join.
StatusOr<RuleSet> BuiltInRulesAnd(std::string_view more);

// Returns "field, 200 instances" when the built-in verdicts (rules/sets/verified.txt, compiled in)
// have the rule's digest; else nullopt.
std::optional<std::string> ProofOf(const Rule& rule);

}  // namespace ag
