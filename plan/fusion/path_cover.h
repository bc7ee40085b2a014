// The cheapest cover of a graph by groups: dynamic programming over the trees that single-reader
// edges form. A group is a path of such a tree, with the transposes that hang on its steps where
// the pattern says so. Each operator has at most one reader that may join its group. Thread-safe.
#pragma once

#include <vector>

#include "plan/fusion/grouping.h"
#include "plan/spec/node_layouts.h"

namespace ag {

// One group: the operators from `first` along single-reader edges to `last`.
struct PathGroup {
  NodeId first = 0;
  NodeId last = 0;
  std::vector<NodeId> nodes;  // All of them, ascending, when there are others beside the path.
  const GroupPattern* pattern = nullptr;
  GroupTime time;
};

// reader[id] is the operator that may follow `id` in a group; -1: none. An operator that is `taken`
// is in no path and is no reader.
struct CoverRequest {
  const Graph& graph;
  const DeviceSpec& spec;
  const Policy& policy;
  const NodeLayouts& layouts;
  const std::vector<NodeId>& reader;
  const std::vector<bool>& taken;
  GroupTimes& times;
  GroupingOptions options;
};

// Returns the groups by ascending last operator. kUnimplemented: an operator fits no group; the
// message names it.
StatusOr<std::vector<PathGroup>> CoverByPaths(const CoverRequest& request);

// Returns the group of `nodes`, ascending, with its ports, which depend only on nodes and layouts.
// The last one makes what others read.
Group MakeGroup(const Graph& graph, const NodeLayouts& layouts, std::vector<NodeId> nodes);

// Returns the operators from `first` to `last`.
std::vector<NodeId> PathOf(const std::vector<NodeId>& reader, NodeId first, NodeId last);

}  // namespace ag
