// Runs the nodes of a graph that some edges depend on, in order, over values of any kind: numbers
// of one scalar type (evaluate_as.h) or tensors (evaluate.h). Private to graph/reference.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "graph/array.h"
#include "graph/graph.h"
#include "graph/tensor.h"

namespace ag::internal {

template <class T>
const Shape& ShapeOf(const Array<T>& value) {
  return value.shape;
}
inline const Shape& ShapeOf(const Tensor& value) { return value.type().shape; }

template <class V>
struct Operands {
  absl::InlinedVector<const TensorType*, 4> types;
  absl::InlinedVector<const V*, 4> values;
};

// What a node's value is.
template <class V>
struct NodeValues {
  std::function<StatusOr<V>(NodeId)> constant;
  std::function<StatusOr<std::vector<V>>(const Node&, const Operands<V>&)> result;
  std::function<Status(Edge, const V&)> check;  // May be null. Called for each wanted edge.
  std::function<Status(NodeId)> on_node;        // May be null. As EvaluateOptions::on_node.
};

// Used once.
template <class V>
class GraphWalk {
 public:
  GraphWalk(const Graph& graph, const std::vector<V>& inputs, NodeValues<V> of)
      : graph_(graph),
        inputs_(inputs),
        of_(std::move(of)),
        readers_(static_cast<size_t>(graph.size())),
        values_(static_cast<size_t>(graph.size())) {}

  // Returns the values of the edges; frees each other value after its last use. kInvalidArgument:
  // an input has another shape. Other errors are those of NodeValues.
  StatusOr<std::vector<V>> Run(std::span<const Edge> edges) {
    CountReaders(edges);
    AG_TRY(CheckInputs());
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (readers_[id] > 0 && !IsConstant(id)) AG_TRY(Compute(id));
    }
    std::vector<V> results;
    for (const Edge& e : edges) {
      AG_TRY(Need(e.node));
      V& value = values_[e.node][static_cast<size_t>(e.output)];
      if (of_.check) AG_TRY(of_.check(e, value));
      const bool is_last = readers_[e.node] == 1;
      results.push_back(is_last ? std::move(value) : value);
      Release(e.node);
    }
    return results;
  }

 private:
  Status CheckInputs() const {
    bool needed = false;
    for (const NodeId id : graph_.inputs()) needed = needed || readers_[id] > 0;
    if (inputs_.empty() && !needed) return OkStatus();
    if (inputs_.size() != graph_.inputs().size()) {
      return Err(StatusCode::kInvalidArgument, "expected {} inputs, got {}", graph_.inputs().size(),
                 inputs_.size());
    }
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const Shape& expected = graph_.node(graph_.inputs()[i]).outputs[0].shape;
      if (ShapeOf(inputs_[i]) == expected) continue;
      return Err(StatusCode::kInvalidArgument, "input '{}': expected {}, got {}",
                 graph_.input_name(i), ShapeToString(expected), ShapeToString(ShapeOf(inputs_[i])));
    }
    return OkStatus();
  }

  // Sets readers_[n] to the number of needed operands and wanted edges that read node n. One sweep
  // from the back suffices: operands come before their readers.
  void CountReaders(std::span<const Edge> edges) {
    for (const Edge& e : edges) ++readers_[e.node];
    for (NodeId id = graph_.size() - 1; id >= 0; --id) {
      if (readers_[id] == 0) continue;
      for (const Edge& e : graph_.node(id).inputs) ++readers_[e.node];
    }
  }

  bool IsConstant(NodeId id) const { return graph_.node(id).op == OpKind::kConstant; }

  // Computes a constant for its first reader, so that a model's weights are never in memory all at
  // once.
  Status Need(NodeId id) {
    return IsConstant(id) && values_[id].empty() ? Compute(id) : OkStatus();
  }

  Status Compute(NodeId id) {
    AG_TRY(ComputeNode(id));
    return of_.on_node ? of_.on_node(id) : OkStatus();
  }

  Status ComputeNode(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.op == OpKind::kInput) return ComputeInput(id);
    if (node.op == OpKind::kConstant) {
      AG_LET(V value, of_.constant(id));
      values_[id].push_back(std::move(value));
      return OkStatus();
    }
    for (const Edge& e : node.inputs) AG_TRY(Need(e.node));
    Operands<V> operands;
    for (const Edge& e : node.inputs) {
      operands.types.push_back(&graph_.type(e));
      operands.values.push_back(&values_[e.node][static_cast<size_t>(e.output)]);
    }
    AG_LET(values_[id], of_.result(node, operands));
    for (const Edge& e : node.inputs) Release(e.node);
    return OkStatus();
  }

  Status ComputeInput(NodeId id) {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (graph_.inputs()[i] == id) values_[id].push_back(inputs_[i]);
    }
    return OkStatus();
  }

  void Release(NodeId id) {
    if (--readers_[id] == 0) std::vector<V>().swap(values_[id]);
  }

  const Graph& graph_;
  const std::vector<V>& inputs_;
  const NodeValues<V> of_;
  std::vector<int64_t> readers_;
  std::vector<std::vector<V>> values_;
};

}  // namespace ag::internal
