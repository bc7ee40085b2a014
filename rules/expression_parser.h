// Syntax of attribute expressions and guards.
#pragma once

#include "rules/expression.h"
#include "rules/source_text.h"

namespace ag {

// expression := sum [(== | != | <= | >= | < | >) sum]; calls of unknown functions are refused here.
StatusOr<Expression> ParseExpression(Cursor& cursor);

}  // namespace ag
