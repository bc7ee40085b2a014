// Reads rules from text: syntax here, names and operators in rules/resolver.h.
#pragma once

#include <string_view>
#include <vector>

#include "rules/pattern.h"
#include "rules/source_text.h"

namespace ag {

// The rules of one file, in order. kInvalidArgument as RuleSet::Parse says.
StatusOr<std::vector<Rule>> ParseRules(std::string_view text, std::string_view file);

}  // namespace ag
