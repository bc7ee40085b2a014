// Puts a rule's target into a graph. Thread-safe; the builder or patch belongs to one thread.
#pragma once

#include "graph/patch.h"
#include "rules/language/bindings.h"
#include "rules/language/pattern.h"

namespace ag {

// Adds the target of `pattern` to `builder`, which was started from `graph`, and makes every reader
// of the roots read the target. kFailedPrecondition: the target is ill-typed here, or it would
// change a root's type. After an error the builder may hold dead nodes and some of the
// replacements; it cannot be used any more.
Status ApplyTo(GraphBuilder* builder, const Graph& graph, const RulePattern& pattern,
               const Bindings& bindings);

// Does the same in a patch of the graph to which the bindings belong. After an error the caller
// clears the patch.
Status ApplyTo(GraphPatch* patch, const RulePattern& pattern, const Bindings& bindings);

}  // namespace ag
