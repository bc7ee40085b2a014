// Layouts that change along a graph: early, wide layers and late, deep layers prefer different
// layouts, and a change may save more than its reorders cost. Pure functions.
#pragma once

#include <vector>

#include "plan/fusion/group_time.h"
#include "plan/spec/node_layouts.h"

namespace ag {

// The cover of the graph with groups when contractions prefer one layout.
struct LayoutCover {
  Layout preferred = Layout::kPlain;
  NodeLayouts layouts;
  // By NodeId: the cost of the group that begins at the node, and of the reorders that the node
  // needs first; 0 for other nodes.
  std::vector<Cost> node_cost;
};

// Returns the preferred layout by NodeId. It cuts the topological order into runs that use one
// cover each, and takes the cheapest cut, by dynamic programming. A change costs a reorder, at the
// spec's rates, of every tensor that crosses it and has different layouts in the two covers.
// REQUIRES: at least one cover; each is of all of `graph`.
std::vector<Layout> ChooseRuns(const Graph& graph, const DeviceSpec& spec,
                               const std::vector<LayoutCover>& covers);

}  // namespace ag
