// Local keys of groups (see LocalKey): one hash per node, combined per group. Safe to share between
// threads once built.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "plan/fusion/group_time.h"
#include "plan/spec/node_layouts.h"

namespace ag {

// The parts of a group's problem besides its nodes.
struct KeyFrame {
  std::string_view pattern;
  std::string_view precision;
  int cores = 0;
  bool cold_cache = false;
};

// Returns the key of a reorder or of a copy.
LocalKey KeyOfReorder(const TensorType& type, Layout from, Layout to, const KeyFrame& frame);

class GroupKeys {
 public:
  // Both arguments must outlive it.
  GroupKeys(const Graph& graph, const NodeLayouts& layouts);

  // Returns the key of the group with these nodes, each of which reads the one before.
  LocalKey OfPath(std::span<const NodeId> path, const KeyFrame& frame) const;

 private:
  LocalKey OfNode(NodeId id) const;

  const Graph& graph_;
  const NodeLayouts& layouts_;
  std::vector<LocalKey> nodes_;
};

}  // namespace ag
