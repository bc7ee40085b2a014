// The cheapest cover of a graph by groups: dynamic programming over the trees that single-reader
// edges make (each operator has at most one reader it could be grouped with).
#pragma once

#include <vector>

#include "plan/estimator.h"
#include "plan/node_layouts.h"

namespace ag {

// One group: the operators from `first` along the single-reader edges, ending with `last`.
struct PathGroup {
  NodeId first = 0;
  NodeId last = 0;
  const GroupPattern* pattern = nullptr;
  GroupTime time;
};

// reader[id]: the operator that a group may go on with after `id`; -1: none. An operator that is
// `taken` is in no path and no reader.
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

// The groups by ascending last operator. kUnimplemented names an operator that fits no group.
StatusOr<std::vector<PathGroup>> CoverByPaths(const CoverRequest& request);

// The group of `path`, with its ports, which only depend on nodes and layouts.
Group MakeGroup(const Graph& graph, const NodeLayouts& layouts, std::vector<NodeId> path);

// The operators from `first` to `last`.
std::vector<NodeId> PathOf(const std::vector<NodeId>& reader, NodeId first, NodeId last);

}  // namespace ag
