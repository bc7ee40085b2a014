// The IR: a directed acyclic graph of operators over typed tensors.
//
// A Graph is immutable and cheap to copy (copies share). It is always canonical: nodes stand in one
// deterministic topological order (post-order of a depth-first walk from the outputs, operands in
// order; declared inputs first), nothing dead is in it, every node is well typed, and every
// attribute of the operator table is present. Two graphs of the same structure have equal nodes()
// whatever order they were built in. Thread-safe to read.
//
// Nothing carries a name but the graph's inputs and outputs: their names are the model's contract.
// Names are not part of the canonical bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "base/digest.h"
#include "base/status.h"
#include "graph/attributes.h"
#include "graph/op_kind.h"
#include "graph/types.h"

namespace ag {

using NodeId = int32_t;

// One output of one node: a tensor of the graph.
struct Edge {
  NodeId node = -1;
  int32_t output = 0;
  auto operator<=>(const Edge&) const = default;
  template <class H>
  friend H AbslHashValue(H h, const Edge& e) {
    return H::combine(std::move(h), e.node, e.output);
  }
};

// The payload of a Constant node. Constants of at most kInlineBytesMax bytes carry their bytes, so
// that guards and shape logic can read them; the others are named by digest only.
struct ConstantData {
  static constexpr int64_t kInlineBytesMax = 256;
  Digest digest;
  std::string inline_bytes;  // Empty for larger ones (and for empty tensors).
};

struct Node {
  OpKind op = OpKind::kInput;
  std::shared_ptr<const Attributes> attributes;  // Never null in a built graph.
  absl::InlinedVector<Edge, 3> inputs;
  absl::InlinedVector<TensorType, 1> outputs;    // One type per output.
  std::shared_ptr<const ConstantData> constant;  // Constant only.

  int64_t Int(std::string_view name) const { return attributes->Int(name); }
  double Float(std::string_view name) const { return attributes->Float(name); }
  const Ints& IntList(std::string_view name) const { return attributes->IntList(name); }
};

// Input `index` of node `node` reads some edge.
struct Use {
  NodeId node = -1;
  int32_t index = 0;
  auto operator<=>(const Use&) const = default;
};

struct GraphOutput {
  Edge edge;
  std::string name;
};

class Graph {
 public:
  Graph();  // The empty graph.

  const std::vector<Node>& nodes() const;
  const Node& node(NodeId id) const { return nodes()[id]; }
  int size() const { return static_cast<int>(nodes().size()); }
  const TensorType& type(Edge e) const { return node(e.node).outputs[e.output]; }

  const std::vector<NodeId>& inputs() const;  // Declared order; unused ones included.
  const std::string& input_name(size_t i) const;
  const std::vector<GraphOutput>& outputs() const;  // Declared order; edges may repeat.

  std::span<const Use> uses(Edge e) const;  // Readers of `e`; graph outputs not included.
  bool is_output(Edge e) const;
  // True when the node's value depends on constants alone: it is folded before anything runs.
  bool is_constant(NodeId id) const;

  // True for copies of one graph; false says nothing.
  bool SharesAll(const Graph& other) const { return data_ == other.data_; }

  // SHA-256 of the canonical bytes (CanonicalBytes of graph/codec.h). Computed on first use.
  const Digest& digest() const;

 private:
  friend class GraphBuilder;
  friend class GraphPatch;  // graph/patch.h
  struct Data;
  explicit Graph(std::shared_ptr<const Data> data);
  // Indexes nodes that stand in canonical order.
  static std::shared_ptr<const Data> IndexGraph(std::vector<Node> nodes, std::vector<NodeId> inputs,
                                                std::vector<std::string> input_names,
                                                std::vector<GraphOutput> outputs);
  std::shared_ptr<const Data> data_;
};

// Builds a graph, from nothing or from another graph: add nodes, replace edges, Build.
// Not thread-safe. Every Edge handed in must have come from this builder (or its graph).
class GraphBuilder {
 public:
  GraphBuilder();
  // Starts with the nodes, inputs and outputs of `graph`; its NodeIds stay valid in this builder.
  explicit GraphBuilder(const Graph& graph);
  ~GraphBuilder();
  GraphBuilder(GraphBuilder&&) noexcept;

  // REQUIRES (Input, Constant): CheckType(type) is OK.
  Edge Input(std::string name, TensorType type);
  // Adds a constant named by digest; `bytes` fills inline_bytes when it is small enough and known.
  Edge Constant(TensorType type, const Digest& digest, std::string_view bytes = {});
  // Adds an operator node and infers its output types. Attributes left out take the defaults of
  // graph/ops.def; reshape's shape may hold one -1. kInvalidArgument: wrong arity, unknown or
  // missing attribute, ill-typed operands; the message begins with the operator's name.
  StatusOr<NodeId> Add(OpKind op, std::span<const Edge> inputs, Attributes attributes = {});
  // As Add, and returns output 0.
  StatusOr<Edge> Add1(OpKind op, std::initializer_list<Edge> inputs, Attributes attributes = {});
  // Adds an opaque node: kept exactly, its output types as given (graph/onnx makes these).
  NodeId AddOpaque(std::span<const Edge> inputs, Attributes attributes,
                   std::span<const TensorType> outputs);
  void Output(Edge edge, std::string name);

  // Every reader of `from` (and every graph output that is `from`) reads `to` from now on, except
  // nodes and outputs added after this call that name `from` themselves. When `to` was replaced
  // before, its replacement is meant. kInvalidArgument: the types differ.
  Status Replace(Edge from, Edge to);

  // Takes back all outputs, or the declaration of one input (nothing may read it at Build).
  void ForgetOutputs();
  void ForgetInput(Edge input);

  const TensorType& type(Edge e) const;
  const Node& node(NodeId id) const;

  // Removes the dead, orders canonically. kInvalidArgument: the graph has a cycle (a replacement
  // made it), no output, or reads a forgotten input. Linear in nodes and edges.
  StatusOr<Graph> Build() const;

 private:
  struct State;
  class Walk;
  std::unique_ptr<State> state_;
};

}  // namespace ag
