// Minimum vertex cuts of directed acyclic graphs, by maximum flow.
#pragma once

#include <cstdint>
#include <vector>

namespace ag {

// Vertices 0..n-1 in topological order: every successor has a larger number.
struct CutProblem {
  std::vector<std::vector<int>> successors;
  std::vector<int64_t> capacity;  // Of each vertex, >= 0.
  // The first `head` vertices stand before the cut, the last `tail` behind it.
  // REQUIRES: head >= 1, tail >= 1, head + tail <= n.
  int head = 1;
  int tail = 1;
};

struct VertexCut {
  // The frontier's capacity: of all vertices before the cut that have a successor behind it.
  int64_t value = 0;
  std::vector<bool> before;  // Closed under predecessors.
};

// The cut of least value, and among these the one nearest to the head. Iterative; time is that of
// value / capacity augmentations, each linear in the graph.
VertexCut MinVertexCut(const CutProblem& problem);

// Among cuts of the least value (head = tail = 1) one that is near the middle: the cut is confined
// to ever wider windows around the middle of the order until the least value is reached in one.
VertexCut BalancedVertexCut(CutProblem problem);

}  // namespace ag
