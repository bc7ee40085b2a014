// Minimum vertex cuts of directed acyclic graphs, by maximum flow. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

namespace ag {

// A graph with vertices 0..n-1 in topological order: every successor has a larger number.
struct CutProblem {
  std::vector<std::vector<int>> successors;
  std::vector<int64_t> capacity;  // The capacity of each vertex, >= 0.
  // The first `head` vertices are before the cut, the last `tail` behind it. REQUIRES: head >= 1,
  // tail >= 1, head + tail <= n.
  int head = 1;
  int tail = 1;
};

struct VertexCut {
  // The capacity of the frontier: of all vertices before the cut with a successor behind it.
  int64_t value = 0;
  std::vector<bool> before;  // Closed under predecessors.
};

// Returns the cut of least value; of several, the one nearest to the head. Needs no recursion.
// Linear in the graph per augmenting path.
VertexCut MinVertexCut(const CutProblem& problem);

// Returns a cut of the least value near the middle (`head` and `tail` become 1). It restricts the
// cut to windows of growing width around the middle of the order, until one reaches the least
// value.
VertexCut BalancedVertexCut(CutProblem problem);

}  // namespace ag
