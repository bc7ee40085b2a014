// Whether a path of operators is a group of a pattern. A match in progress is the set of steps that
// the last operator may have taken, one bit each, so that optional steps need no backtracking.
#pragma once

#include "plan/device_spec.h"

namespace ag {

// The match after the anchor; 0 when the pattern does not begin with `node`.
uint32_t BeginMatch(const GroupPattern& pattern, const Graph& graph, NodeId node);

// The match after a further operator; 0 when it does not fit.
uint32_t ExtendMatch(const GroupPattern& pattern, uint32_t match, const Graph& graph, NodeId node);

// Whether the pattern takes every operator of this kind as its anchor.
bool CanAnchor(const GroupPattern& pattern, OpKind op);

// Whether one of its steps takes the node.
bool HasStepFor(const GroupPattern& pattern, const Graph& graph, NodeId node);

// True when the group may end here.
bool IsWholeMatch(const GroupPattern& pattern, uint32_t match);

// The most operators a group of the pattern can have; INT_MAX where the spec sets no limit.
int NodesMax(const GroupPattern& pattern);

// Whether `step`, which reads `link` inside a group that begins with `anchor`, keeps the shape of
// what it reads, and takes its other operands in a form that every device can: anything in
// element-wise groups; in other groups a tensor of the result's shape, or a constant that is a
// scalar or runs along the result's channels (axis 1 after a convolution, the last one elsewhere).
// A convolution may change the number of channels; `link` is its image.
bool IsStepUsable(const Graph& graph, OpKind anchor, Edge link, NodeId step);

}  // namespace ag
