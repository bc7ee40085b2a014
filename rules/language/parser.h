// Parses rules from text: the syntax. rules/language/resolver.h handles names and operators. Pure
// functions.
#pragma once

#include <string_view>
#include <vector>

#include "rules/language/pattern.h"
#include "rules/language/source_text.h"

namespace ag {

// Returns the rules of one file, in order. kInvalidArgument: as RuleSet::Parse.
StatusOr<std::vector<Rule>> ParseRules(std::string_view text, std::string_view file);

}  // namespace ag
