// The cheapest cover of a graph by groups: dynamic programming over the forest in which each
// operator hangs on its first reader. A group is a connected piece of one tree of it: a path, with
// what hangs on its operators where the pattern says so. Thread-safe.
#pragma once

#include <vector>

#include "plan/fusion/grouping.h"
#include "plan/spec/node_layouts.h"

namespace ag {

struct CoverGroup {
  std::vector<NodeId> nodes;  // Ascending; the last one is the root of the piece.
  const GroupPattern* pattern = nullptr;
  GroupTime time;
};

// How the operators hang together.
struct CoverForest {
  // The operator that `id` may join in a group: the first that reads its only output, in the layout
  // in which it is written; -1: none.
  std::vector<NodeId> reader;
  // Whether the output has other uses as well. Then `id` joins its reader only where its step has
  // the mark ">".
  std::vector<bool> shared;
  // Operators that are views: in no group, and readers of none.
  std::vector<bool> taken;
};

struct CoverRequest {
  const Graph& graph;
  const DeviceSpec& spec;
  const Policy& policy;
  const NodeLayouts& layouts;
  const CoverForest& forest;
  GroupTimes& times;
  GroupingOptions options;
};

// Returns the groups by ascending last operator. kUnimplemented: an operator fits no group; the
// message names it.
StatusOr<std::vector<CoverGroup>> CoverByGroups(const CoverRequest& request);

// Returns the group of `nodes`, ascending, with its ports, which depend only on nodes and layouts.
// The outputs of the last operator come first, then those of others that are read outside.
Group MakeGroup(const Graph& graph, const NodeLayouts& layouts, std::vector<NodeId> nodes);

// The most outputs of a group of several operators.
inline constexpr int kOutputsMax = 4;

// Returns true when every reader outside of what the operators but the last one make comes after
// the last one, and no more than kOutputsMax values are read outside. Such groups have an order,
// that of their last operators, in which each comes after all that it reads, so no two of them wait
// for each other. `nodes` are ascending.
bool AreReadersLater(const Graph& graph, const NodeLayouts& layouts,
                     const std::vector<NodeId>& nodes);

}  // namespace ag
