// The values of a rule's names at one place in one graph. Plain data; safe to share between
// threads.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "graph/graph.h"

namespace ag {

// The value of a label (conv.c): the node that it matched.
struct LabelValue {
  NodeId node = -1;
  bool operator==(const LabelValue&) const = default;
};
using Value = std::variant<std::monostate, int64_t, double, Ints, std::string, Edge, LabelValue>;

inline bool IsBound(const Value& value) { return value.index() != 0; }

// The facts about tensors that expressions may read, from a graph, or from a builder of the
// verifier. In a builder only Constant nodes are constant, and every value counts as having one
// reader.
class TensorFacts {
 public:
  TensorFacts(const Graph& graph) : graph_(&graph) {}  // NOLINT: a graph is its own facts.
  explicit TensorFacts(const GraphBuilder& builder) : builder_(&builder) {}

  const Node& node(NodeId id) const { return graph_ ? graph_->node(id) : builder_->node(id); }
  const TensorType& type(Edge edge) const { return node(edge.node).outputs[edge.output]; }
  bool is_constant(Edge edge) const {
    return graph_ ? graph_->is_constant(edge.node) : node(edge.node).op == OpKind::kConstant;
  }
  bool single_use(Edge edge) const { return graph_ == nullptr || graph_->has_one_use(edge); }

 private:
  const Graph* graph_ = nullptr;
  const GraphBuilder* builder_ = nullptr;
};

// The values of slot s of the pattern are slots[s]: one value, or for a family x[i] one value for
// each i.
struct Bindings {
  std::vector<absl::InlinedVector<Value, 1>> slots;
  std::vector<int> counts;               // By index letter: the number of i; -1: unknown.
  std::vector<std::vector<Edge>> roots;  // By root pattern: one edge, or one for each i.
  std::vector<NodeId> nodes;             // Every node that an operator of the pattern matched.
  int64_t serial = 0;                    // Site::serial.

  // Returns the value at `position` of the slot; an unbound value when there is none.
  const Value& At(int slot, int position) const {
    static const Value kNone;
    const auto& values = slots[slot];
    return position < static_cast<int>(values.size()) ? values[position] : kNone;
  }
};

}  // namespace ag
