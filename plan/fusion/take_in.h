// Movements in front of attention and rotary embeddings: slices, splits, gathers, expands, reshapes
// and scales whose only readers are in one group join it, so that its kernel reads by strides what
// they would copy. They join after the cover is found (cover.h), since one of them may have several
// readers, or be a view with movements behind it that are none. Thread-safe.
#pragma once

#include <vector>

#include "plan/fusion/cover.h"

namespace ag {

// Whether the operators, ascending, are what their pattern means: a group of several whose pattern
// has the mark "<" of an operator is attention (plan/spec/attention_form.h) or a rotary embedding
// (plan/spec/rotary_form.h).
bool HasForm(const Graph& graph, std::span<const NodeId> nodes);

// Adds such operators to the groups whose pattern has the mark "<" of an operator, where that is
// not slower, and removes the groups that these were. The group keeps its form. A view in front of
// all others stays outside: it costs nothing. Returns which operators joined, by NodeId; empty:
// none.
std::vector<bool> TakeInMovements(const CoverRequest& request, BriefGroups* groups);

}  // namespace ag
