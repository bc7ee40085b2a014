// From names to slots: what a rule's text says of operators, attributes and variables is checked
// here, so that matcher and applier need no checks.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rules/pattern.h"
#include "rules/source_text.h"

namespace ag {

struct UnresolvedRule {
  RulePattern pattern;
  std::string each;                      // The i of "each i:"; "" when none.
  std::vector<std::string> guard_binds;  // By guard: the n of "n = e"; "" when none.
};

// Fills in the operator (or the class of operators) that `word` names.
Status ResolveOperator(const SourceText& source, const std::string& word, size_t offset,
                       Term* term);

// Checks the rule and gives every name a slot. Errors point at the place.
StatusOr<std::shared_ptr<const RulePattern>> Resolve(const SourceText& source, UnresolvedRule rule);

}  // namespace ag
