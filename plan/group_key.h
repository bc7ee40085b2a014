// Local keys of groups (see LocalKey): hashed once per node, then combined per group.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "plan/estimator.h"
#include "plan/node_layouts.h"

namespace ag {

// What a group's problem depends on besides its nodes.
struct KeyFrame {
  std::string_view pattern;
  std::string_view precision;
  int cores = 0;
  bool cold_cache = false;
};

// The key of a reorder, or of a copy.
LocalKey KeyOfReorder(const TensorType& type, Layout from, Layout to, const KeyFrame& frame);

class GroupKeys {
 public:
  // Borrows both, which outlive it.
  GroupKeys(const Graph& graph, const NodeLayouts& layouts);

  // The key of the group of `path`, each of whose nodes reads the one before.
  LocalKey OfPath(std::span<const NodeId> path, const KeyFrame& frame) const;

 private:
  LocalKey OfNode(NodeId id) const;

  const Graph& graph_;
  const NodeLayouts& layouts_;
  std::vector<LocalKey> nodes_;
};

}  // namespace ag
