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
  explicit NodeMarks(int nodes) : marks_(static_cast<size_t>(nodes)) {}

  // Makes the set these nodes, each once.
  void Set(std::span<const NodeId> nodes) {
    ++now_;
    count_ = 0;
    for (const NodeId id : nodes) marks_[id] = {now_, count_++};
  }
  // Adds a node. Returns false when it was there.
  bool Add(NodeId id) {
    if (Has(id)) return false;
    marks_[id] = {now_, count_++};
    return true;
  }
  bool Has(NodeId id) const { return marks_[id].since == now_; }
  // Returns how many were set or added before the node; -1: it is not in the set.
  int PlaceOf(NodeId id) const { return Has(id) ? marks_[id].place : -1; }

 private:
  struct Mark {
    uint32_t since = 0;  // The value of now_ when the node was added.
    int32_t place = 0;
  };
  std::vector<Mark> marks_;  // By node.
  uint32_t now_ = 1;
  int32_t count_ = 0;
};

}  // namespace ag
