// Names of nodes that do not depend on a model's open sizes: the same node has the same name in the
// model's graph at any sizes. One thread at a time.
#pragma once

#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace ag {

class SizeBlind {
 public:
  // Learns from graphs of one model at several sizes which constants depend on these.
  explicit SizeBlind(std::span<const Graph> graphs);

  // Return one name for each node, a hash over all below it. The loose ones pass over reshapes,
  // expands and transposes: how many of them are left depends on sizes (a transpose of an axis of
  // one element is a reshape).
  std::vector<uint64_t> Names(const Graph& graph) const { return NamesOf(graph, false); }
  std::vector<uint64_t> LooseNames(const Graph& graph) const { return NamesOf(graph, true); }

  // Returns the graph with the operands of commutative operators in an order that does not depend
  // on sizes: constants last, then by name.
  StatusOr<Graph> Ordered(const Graph& graph) const;

 private:
  std::vector<uint64_t> NamesOf(const Graph& graph, bool loose) const;

  // Zeros of two shapes may have the same bytes as zeros of a third: the type counts.
  using Constant = std::pair<Digest, TensorType>;
  struct Less {
    bool operator()(const Constant& a, const Constant& b) const {
      return std::tie(a.first, a.second.dtype, a.second.shape) <
             std::tie(b.first, b.second.dtype, b.second.shape);
    }
  };
  static Constant ConstantAt(const Node& node) { return {node.constant->digest, node.outputs[0]}; }
  std::set<Constant, Less> varying_;
};

}  // namespace ag
