// Matching of paths of operators with group patterns. A partial match is the set of steps that the
// last operator may be, one bit each, so optional steps need no backtracking. Pure functions.
#pragma once

#include "plan/spec/device_spec.h"

namespace ag {

// Returns the match after the anchor; 0: the pattern does not begin with `node`.
uint32_t BeginMatch(const GroupPattern& pattern, const Graph& graph, NodeId node);

// An operator that reads `link`, an edge of the operator before it in a group that begins with
// `anchor`.
struct NextNode {
  OpKind anchor;
  Edge link;
  NodeId node = 0;
};

// Returns the match after a further operator; 0: it does not fit. A step without marks keeps the
// shape of `link`, but a convolution may change the number of channels, and `link` is its image; in
// an element-wise group `link` is that image times one number a channel. A reduction is the mean of
// each channel of an image. In element-wise groups the other operands may be anything. In other
// groups, and behind a convolution, they are tensors of the
// result's shape, or constants: a scalar, or one value per channel (axis 1 after a convolution,
// else the last axis). Softmax runs along the last axis.
// A step with "&" takes any other operands from outside the group: an element-wise one those that
// leave the shape of `link`; a MatMul has `link` as its left operand, whose batch axes the result
// keeps; a Transpose may have any permutation; a Sub or Div has `link` on the left; a Where puts a
// constant of one element in the place of elements of `link`. A normalization reads `link` as what
// it normalizes.
uint32_t ExtendMatch(const GroupPattern& pattern, uint32_t match, const Graph& graph,
                     const NextNode& next);

// Returns true when transposes in front of the node's operands may join its group.
bool TakesTransposes(const GroupPattern& pattern, const Graph& graph, NodeId node);

// Returns the steps, one bit each, whose results may have other readers than the next step.
uint32_t SharedSteps(const GroupPattern& pattern);

// Returns true when a step takes the node whose result may have other readers.
bool MayBeShared(const GroupPattern& pattern, const Graph& graph, NodeId node);

// Returns true when the node may join a group in front of a product with the mark "<".
bool MayJoinBefore(const GroupPattern& pattern, const Graph& graph, NodeId node);

// Returns true when a step takes the node, or the node may join before one.
bool HasStepFor(const GroupPattern& pattern, const Graph& graph, NodeId node);

// Returns true when the group may end here.
bool IsWholeMatch(const GroupPattern& pattern, uint32_t match);

// Returns the greatest number of operators in a group of the pattern; INT_MAX: no limit.
int NodesMax(const GroupPattern& pattern);

}  // namespace ag
