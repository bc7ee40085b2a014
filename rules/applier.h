// Putting a rule's target into a graph.
#pragma once

#include "graph/patch.h"
#include "rules/bindings.h"
#include "rules/pattern.h"

namespace ag {

// Adds the target of `pattern` to `builder`, which was started from `graph`, and makes every reader
// of the roots read it. kFailedPrecondition: the target is ill-typed here or would change a root's
// type. After an error the builder holds dead nodes and maybe some of the replacements: throw it
// away.
Status ApplyTo(GraphBuilder* builder, const Graph& graph, const RulePattern& pattern,
               const Rewrite::Bindings& bindings);

// The same as a patch of the graph that the bindings are of. Clear the patch after an error.
Status ApplyTo(GraphPatch* patch, const RulePattern& pattern, const Rewrite::Bindings& bindings);

}  // namespace ag
