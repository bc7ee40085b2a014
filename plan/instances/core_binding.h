// Which core computes which part of an instance's results, and in which buffer they lie:
// GraphTurbo's Algorithm 4 (Zhao et al., OSDI 2023, section 4.3). Pure functions.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "plan/instances/sub_graphs.h"
#include "plan/spec/layout.h"

namespace ag {

// Cores along each axis of a result; their product is the number of cores in use.
using Binding = std::vector<int>;

// Returns the binding by the largest factors first, from the outermost axis of the layout inwards:
// of 8 cores 8, 4, 2 or 1 along an axis that it divides, the rest along the next one.
Binding PlainBinding(const Shape& shape, int cores, Layout layout);

struct CoreBindings {
  std::map<NodeId, Binding> of;  // Of the results of each operator of the sub-graph.
  // Results inside the sub-graph that a reader wants bound otherwise: they lie in the global
  // buffer, the others in the local ones.
  std::set<Edge> global;
  int redistributions = 0;  // Pairs of a result and a reader that wants it bound otherwise.
  int copies = 0;  // Results that leave the sub-graph: from the local buffers to the global.
};

// Walks the operators of the sub-graph from the last one back. One without a binding gets the plain
// one; what it reads gets the binding by which each core reads its own results alone. Where that
// cannot be (a window, a sum, a broadcast over cores), or the producer has another binding already,
// the result goes to the global buffer. `images`: the layout of tensors with four axes.
CoreBindings BindCores(const LayeredGraph& layered, const SubGraph& sub, int cores, Layout images);

}  // namespace ag
