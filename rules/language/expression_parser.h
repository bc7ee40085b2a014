// Syntax of attribute expressions and guards. One thread at a time per cursor.
#pragma once

#include "rules/language/expression.h"
#include "rules/language/source_text.h"

namespace ag {

// Parses: expression := sum [(== | != | <= | >= | < | >) sum]. kInvalidArgument: a syntax error, or
// a call of an unknown function.
StatusOr<Expression> ParseExpression(Cursor& cursor);

}  // namespace ag
