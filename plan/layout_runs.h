// Layouts that change along a graph: early, wide layers and late, deep ones like different layouts,
// and a reorder between them may cost less than it gives.
#pragma once

#include <vector>

#include "plan/device_spec.h"
#include "plan/node_layouts.h"

namespace ag {

// The graph covered with groups while contractions prefer one layout.
struct LayoutCover {
  Layout preferred = Layout::kPlain;
  NodeLayouts layouts;
  // By NodeId: what the group takes that begins with it, and the reorders that it is the first to
  // need; 0 for the rest.
  std::vector<double> node_ns;
};

// The layout to prefer, by NodeId, when the graph's topological order is cut into runs of one cover
// each: the cheapest cut by dynamic programming over the order. A change is priced with a reorder,
// at the spec's rates, of every tensor that crosses it and lies differently in the two covers.
// REQUIRES: one cover at least, all of `graph`.
std::vector<Layout> ChooseRuns(const Graph& graph, const DeviceSpec& spec,
                               const std::vector<LayoutCover>& covers);

}  // namespace ag
