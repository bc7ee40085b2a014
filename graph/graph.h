// The IR: a directed acyclic graph of operators over typed tensors.
//
// A Graph is immutable and cheap to copy (copies share their data). It is always canonical: nodes
// are in one deterministic topological order (declared inputs first, then the post-order of a
// depth-first walk from the outputs, operands in order), there are no dead nodes, every node is
// well typed, and every attribute of the operator table is present. Two graphs of the same
// structure have equal nodes(), in whatever order they were built. Safe to share between threads.
//
// Only the graph's inputs and outputs have names, because users of the model rely on these. Names
// are not part of the canonical bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "base/digest.h"
#include "base/status.h"
#include "graph/attributes.h"
#include "graph/hash.h"
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

// The payload of a Constant node. A constant of at most kInlineBytesMax bytes carries its bytes, so
// that guards and shape logic can read them; a larger one has only its digest.
struct ConstantData {
  static constexpr int64_t kInlineBytesMax = 256;
  Digest digest;
  std::string inline_bytes;  // Empty for a larger constant, and for an empty tensor.
};

// What a node is besides its operator and operands. It never changes once made.
struct NodeFacts {
  std::shared_ptr<const Attributes> attributes;            // Never null in a built graph.
  TensorTypes outputs;                                     // One type per output.
  std::shared_ptr<const ConstantData> constant = nullptr;  // Constant only.
};

// The types of a node's outputs, which its facts hold.
class OutputTypes {
 public:
  OutputTypes() = default;  // No outputs.
  explicit OutputTypes(const TensorTypes& types) : begin_(types.data()), size_(types.size()) {}

  const TensorType* begin() const { return begin_; }
  const TensorType* end() const { return begin_ + size_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // REQUIRES: i < size().
  const TensorType& operator[](size_t i) const { return begin_[i]; }
  bool operator==(const OutputTypes& other) const {
    return begin_ == other.begin_ || std::equal(begin(), end(), other.begin(), other.end());
  }

 private:
  const TensorType* begin_ = nullptr;
  size_t size_ = 0;
};

struct Node {
  OpKind op = OpKind::kInput;
  absl::InlinedVector<Edge, 3> inputs;
  // Copies of a node share its facts: nodes are copied from graph to graph far more often than
  // made.
  std::shared_ptr<const NodeFacts> facts = nullptr;
  // Parts of the facts.
  const Attributes* attributes = nullptr;
  OutputTypes outputs = {};
  const ConstantData* constant = nullptr;
  // Of the node without its operands (graph/structure_hash.h). What makes nodes sets both.
  StructureHash hash = {};
  uint64_t order_hash = 0;

  void SetFacts(NodeFacts made) {
    facts = std::make_shared<const NodeFacts>(std::move(made));
    attributes = facts->attributes.get();
    outputs = OutputTypes(facts->outputs);
    constant = facts->constant.get();
  }

  int64_t Int(std::string_view name) const { return attributes->Int(name); }
  double Float(std::string_view name) const { return attributes->Float(name); }
  const Ints& IntList(std::string_view name) const { return attributes->IntList(name); }
};

// A reader of an edge: input `index` of node `node`.
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

  const std::vector<Node>& nodes() const { return tables_->nodes; }
  const Node& node(NodeId id) const { return nodes()[id]; }
  int size() const { return static_cast<int>(nodes().size()); }
  const TensorType& type(Edge e) const { return node(e.node).outputs[e.output]; }

  // In declared order; also the unused ones.
  const std::vector<NodeId>& inputs() const { return tables_->inputs; }
  const std::string& input_name(size_t i) const { return tables_->input_names[i]; }
  // In declared order; edges may repeat.
  const std::vector<GraphOutput>& outputs() const { return tables_->outputs; }

  // The operands of a node, as node(id).inputs. Those of all nodes lie behind each other.
  std::span<const Edge> operands(NodeId id) const {
    const auto begin = tables_->operand_begin.begin() + id;
    return {tables_->operands.data() + begin[0], tables_->operands.data() + begin[1]};
  }

  // Whether both nodes are copies of one, operands apart; the same as node(id).facts are.
  bool shares_facts(NodeId id, const Graph& other, NodeId others) const {
    return tables_->facts[id] == other.tables_->facts[others];
  }

  int32_t output_count(NodeId id) const {
    const int32_t* begin = tables_->edge_begin.data() + id;
    return begin[1] - begin[0];
  }

  // The readers of `e`, without graph outputs.
  std::span<const Use> uses(Edge e) const {
    const auto begin = tables_->use_begin.begin() + tables_->NumberOf(e);
    return {tables_->uses.data() + begin[0], tables_->uses.data() + begin[1]};
  }
  bool is_output(Edge e) const { return tables_->is_output[tables_->NumberOf(e)] != 0; }
  // Whether `e` has one reader and is no graph output.
  bool has_one_use(Edge e) const {
    const auto number = static_cast<size_t>(tables_->NumberOf(e));
    const int32_t* begin = tables_->use_begin.data() + number;
    return begin[1] - begin[0] == 1 && tables_->is_output[number] == 0;
  }
  // True when the node's value depends only on constants. It is computed before the graph runs. An
  // opaque node must say that it always gives the same value (attribute `recipe`).
  bool is_constant(NodeId id) const { return tables_->is_constant[id] != 0; }

  // True for copies of one graph. False does not mean that the graphs differ.
  bool SharesAll(const Graph& other) const { return tables_ == other.tables_; }

  // Returns the SHA-256 of the canonical bytes (CanonicalBytes of graph/codec.h). Computed on first
  // use.
  const Digest& digest() const;

 private:
  friend class GraphBuilder;
  friend class GraphPatch;  // graph/patch.h
  // What the functions above read.
  struct Tables {
    std::vector<Node> nodes;
    std::vector<NodeId> inputs;
    std::vector<std::string> input_names;
    std::vector<GraphOutput> outputs;

    std::vector<const NodeFacts*> facts;  // Of the nodes.

    // The operands of node n are operands[operand_begin[n] .. operand_begin[n + 1]).
    std::vector<int32_t> operand_begin;
    std::vector<Edge> operands;

    // Edges are numbered node by node: edge (n, o) has the number edge_begin[n] + o. The uses of
    // edge e are uses[use_begin[e] .. use_begin[e + 1]).
    std::vector<int32_t> edge_begin;
    std::vector<int32_t> use_begin;
    std::vector<Use> uses;
    std::vector<uint8_t> is_output;    // By edge.
    std::vector<uint8_t> is_constant;  // By node.

    int32_t NumberOf(Edge e) const { return edge_begin[e.node] + e.output; }
  };
  struct Data;
  explicit Graph(std::shared_ptr<const Data> data);
  const Data& data() const;
  // Builds the indexes over nodes that are in canonical order.
  static std::shared_ptr<Data> IndexGraph(std::vector<Node> nodes, std::vector<NodeId> inputs,
                                          std::vector<std::string> input_names,
                                          std::vector<GraphOutput> outputs);
  std::shared_ptr<const Tables> tables_;  // Of a Data.
};

// Builds a graph, from nothing or from another graph: add nodes, replace edges, then Build. Every
// Edge argument must come from this builder or its graph. One thread at a time.
class GraphBuilder {
 public:
  GraphBuilder();
  // Starts with the nodes, inputs and outputs of `graph`; its NodeIds stay valid in this builder.
  explicit GraphBuilder(const Graph& graph);
  ~GraphBuilder();
  GraphBuilder(GraphBuilder&&) noexcept;

  // Adds an input or a constant. REQUIRES: CheckType(type) is OK.
  Edge Input(std::string name, TensorType type);
  // The constant is named by `digest`. `bytes` becomes inline_bytes when it is small enough.
  Edge Constant(TensorType type, const Digest& digest, std::string_view bytes = {});
  // Adds an operator node and infers its output types. Attributes that are left out take the
  // defaults of graph/ops.def; reshape's shape may hold one -1. kInvalidArgument: wrong arity,
  // unknown or missing attribute, or ill-typed operands; the message begins with the operator's
  // name.
  StatusOr<NodeId> Add(OpKind op, std::span<const Edge> inputs, Attributes attributes = {});
  // Adds a node as Add does, and returns its output 0.
  StatusOr<Edge> Add1(OpKind op, std::initializer_list<Edge> inputs, Attributes attributes = {});
  // Adds an opaque node, which is kept exactly, with the given output types. For graph/onnx.
  NodeId AddOpaque(std::span<const Edge> inputs, Attributes attributes,
                   std::span<const TensorType> outputs);
  // Adds a copy of a node of any graph, not an Input, with these operands.
  StatusOr<NodeId> AddCopy(const Node& node, std::span<const Edge> inputs);
  void Output(Edge edge, std::string name);

  // Makes every reader of `from`, and every graph output that is `from`, read `to` from now on.
  // Nodes and outputs that are added later may name `from` and read it. When `to` was replaced
  // before, readers get its replacement. kInvalidArgument: the types differ.
  Status Replace(Edge from, Edge to);

  // Removes all outputs, or the declaration of one input, which nothing may read at Build.
  void ForgetOutputs();
  void ForgetInput(Edge input);

  const TensorType& type(Edge e) const;
  const Node& node(NodeId id) const;
  int size() const;  // The number of nodes, also dead ones.

  // Returns the graph of the live nodes in canonical order. Sets place[i] to the id in it of node i
  // of this builder; -1: the node is dead. kInvalidArgument: a replacement made a cycle, or the
  // graph has no output, or it reads a forgotten input. Linear in nodes and edges.
  StatusOr<Graph> Build(std::vector<NodeId>* place = nullptr) const;

 private:
  struct State;
  class Walk;
  std::unique_ptr<State> state_;
};

}  // namespace ag
