// Resolves names to slots and checks operators, attributes and variables of a rule, so that matcher
// and applier need no checks. Pure functions.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rules/language/pattern.h"
#include "rules/language/source_text.h"

namespace ag {

struct UnresolvedRule {
  RulePattern pattern;
  std::string each;                      // The i of "each i:"; "": none.
  std::vector<std::string> guard_binds;  // By guard: the n of "n = e"; "": none.
};

// Sets the operator, or the class of operators, that `word` names. kInvalidArgument: there is none.
Status ResolveOperator(const SourceText& source, const std::string& word, size_t offset,
                       Term* term);

// Returns the checked pattern with slots. kInvalidArgument points at the mistake.
StatusOr<std::shared_ptr<const RulePattern>> Resolve(const SourceText& source, UnresolvedRule rule);

}  // namespace ag
