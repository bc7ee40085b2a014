// A set of a graph's nodes that is replaced at once, without a step for each node that leaves it.
// One thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace ag {

class NodeMarks {
 public:
  explicit NodeMarks(int nodes) : since_(static_cast<size_t>(nodes)) {}

  // Makes the set these nodes.
  void Set(std::span<const NodeId> nodes) {
    ++now_;
    for (const NodeId id : nodes) since_[id] = now_;
  }
  // Adds a node. Returns false when it was there.
  bool Add(NodeId id) {
    if (Has(id)) return false;
    since_[id] = now_;
    return true;
  }
  bool Has(NodeId id) const { return since_[id] == now_; }

 private:
  std::vector<uint32_t> since_;  // By node: the value of now_ when it was added.
  uint32_t now_ = 1;
};

}  // namespace ag
