#include <algorithm>
#include <deque>

#include "absl/container/flat_hash_map.h"
#include "graph/graph_data.h"
#include "graph/make_node.h"
#include "graph/shapes.h"

namespace ag {
namespace {

constexpr NodeId kUnseen = -1;
constexpr NodeId kOpen = -2;  // On the walk's stack; reading it again closes a cycle.

struct Replacement {
  int32_t number;  // Replacements are numbered in order.
  Edge to;
};

struct BuilderOutput {
  GraphOutput output;
  int32_t since;  // Replacements from this number on apply.
};

}  // namespace

struct GraphBuilder::State {
  Graph base;
  std::deque<Node> added;  // A deque: references from node() stay valid.
  // For each added node, as BuilderOutput::since. Base nodes have 0.
  std::vector<int32_t> added_since;
  std::vector<NodeId> inputs;
  std::vector<std::string> input_names;
  std::vector<BuilderOutput> outputs;
  absl::flat_hash_map<Edge, absl::InlinedVector<Replacement, 1>> replacements;
  std::vector<uint8_t> is_replaced;  // By node; nodes past the end are not replaced.
  int32_t replacement_count = 0;

  int size() const { return base.size() + static_cast<int>(added.size()); }

  const Node& node(NodeId id) const {
    AG_CHECK(id >= 0 && id < size());
    return id < base.size() ? base.node(id) : added[static_cast<size_t>(id - base.size())];
  }

  bool Knows(Edge e) const {
    return e.node >= 0 && e.node < size() && e.output >= 0 &&
           e.output < static_cast<int>(node(e.node).outputs.size());
  }

  int32_t SinceOf(NodeId id) const {
    return id < base.size() ? 0 : added_since[static_cast<size_t>(id - base.size())];
  }

  NodeId Append(Node node) {
    added.push_back(std::move(node));
    added_since.push_back(replacement_count);
    return size() - 1;
  }

  // Returns the edge that a reader of `e` reads, if the reader was added after `since`
  // replacements. Ends because each step uses a later replacement than the step before.
  Edge Resolve(Edge e, int32_t since) const {
    while (static_cast<size_t>(e.node) < is_replaced.size() && is_replaced[e.node] != 0) {
      const auto found = replacements.find(e);
      if (found == replacements.end()) break;
      const auto next = std::find_if(found->second.begin(), found->second.end(),
                                     [&](const Replacement& r) { return r.number >= since; });
      if (next == found->second.end()) break;
      since = next->number + 1;
      e = next->to;
    }
    return e;
  }
};

GraphBuilder::GraphBuilder() : state_(std::make_unique<State>()) {}

GraphBuilder::GraphBuilder(const Graph& graph) : GraphBuilder() {
  state_->base = graph;
  state_->inputs = graph.inputs();
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    state_->input_names.push_back(graph.input_name(i));
  }
  for (const GraphOutput& output : graph.outputs()) state_->outputs.push_back({output, 0});
}

GraphBuilder::~GraphBuilder() = default;
GraphBuilder::GraphBuilder(GraphBuilder&&) noexcept = default;

Edge GraphBuilder::Input(std::string name, TensorType type) {
  Node node;
  node.op = OpKind::kInput;
  node.SetFacts({NoAttributes(), {std::move(type)}});
  SetHashes(&node);
  const NodeId id = state_->Append(std::move(node));
  state_->inputs.push_back(id);
  state_->input_names.push_back(std::move(name));
  return {id, 0};
}

Edge GraphBuilder::Constant(TensorType type, const Digest& digest, std::string_view bytes) {
  return {state_->Append(MakeConstantNode(std::move(type), digest, bytes)), 0};
}

StatusOr<NodeId> GraphBuilder::Add(OpKind op, std::span<const Edge> inputs, Attributes attributes) {
  absl::InlinedVector<TensorType, 3> types;
  for (const Edge& e : inputs) types.push_back(type(e));
  AG_LET(Node node, MakeOperatorNode(op, inputs, types, std::move(attributes)));
  return state_->Append(std::move(node));
}

StatusOr<Edge> GraphBuilder::Add1(OpKind op, std::initializer_list<Edge> inputs,
                                  Attributes attributes) {
  AG_LET(const NodeId id, Add(op, {inputs.begin(), inputs.size()}, std::move(attributes)));
  return Edge{id, 0};
}

NodeId GraphBuilder::AddOpaque(std::span<const Edge> inputs, Attributes attributes,
                               std::span<const TensorType> outputs) {
  for (const Edge& e : inputs) AG_CHECK(state_->Knows(e));
  AG_CHECK(CompleteAttributes(OpKind::kOpaque, {}, &attributes).ok());
  Node node;
  node.op = OpKind::kOpaque;
  node.inputs.assign(inputs.begin(), inputs.end());
  node.SetFacts({std::make_shared<const Attributes>(std::move(attributes)),
                 TensorTypes(outputs.begin(), outputs.end())});
  SetHashes(&node);
  return state_->Append(std::move(node));
}

StatusOr<NodeId> GraphBuilder::AddCopy(const Node& node, std::span<const Edge> inputs) {
  if (node.op == OpKind::kConstant) {
    return Constant(node.outputs[0], node.constant->digest, node.constant->inline_bytes).node;
  }
  if (Has(node.op, kBarrier)) return AddOpaque(inputs, *node.attributes, node.outputs);
  return Add(node.op, inputs, *node.attributes);
}

void GraphBuilder::Output(Edge edge, std::string name) {
  AG_CHECK(state_->Knows(edge));
  state_->outputs.push_back({{edge, std::move(name)}, state_->replacement_count});
}

Status GraphBuilder::Replace(Edge from, Edge to) {
  AG_CHECK(state_->Knows(from) && state_->Knows(to));
  to = state_->Resolve(to, 0);
  if (type(from) != type(to)) {
    return Err(StatusCode::kInvalidArgument, "replace {}: expected {}, got {}",
               Info(node(from.node).op).text_name, type(from).ToString(), type(to).ToString());
  }
  if (from == to) return OkStatus();
  const auto needed = static_cast<size_t>(from.node) + 1;
  if (state_->is_replaced.size() < needed) {
    state_->is_replaced.resize(std::max(needed, static_cast<size_t>(state_->size())));
  }
  state_->is_replaced[from.node] = 1;
  state_->replacements[from].push_back({state_->replacement_count++, to});
  return OkStatus();
}

void GraphBuilder::ForgetOutputs() { state_->outputs.clear(); }

void GraphBuilder::ForgetInput(Edge input) {
  const auto found = std::find(state_->inputs.begin(), state_->inputs.end(), input.node);
  AG_CHECK(found != state_->inputs.end());
  state_->input_names.erase(state_->input_names.begin() + (found - state_->inputs.begin()));
  state_->inputs.erase(found);
}

const TensorType& GraphBuilder::type(Edge e) const {
  AG_CHECK(state_->Knows(e));
  return state_->node(e.node).outputs[e.output];
}

const Node& GraphBuilder::node(NodeId id) const { return state_->node(id); }

// Lays out the live nodes in the post-order of a depth-first walk, with its own stack. Each node is
// pushed once; meeting a node that is still on the stack is a cycle. Linear in nodes and edges.
class GraphBuilder::Walk {
 public:
  explicit Walk(const State& state)
      : state_(state),
        old_(state.base.nodes().data()),
        place_(static_cast<size_t>(state.size()), kUnseen) {
    nodes_.reserve(place_.size());
  }

  void PlaceInputs() {
    for (const NodeId id : state_.inputs) {
      inputs_.push_back(static_cast<NodeId>(nodes_.size()));
      place_[id] = inputs_.back();
      nodes_.push_back(NodeOf(id));
    }
  }

  // Places `root` and all nodes that it depends on.
  Status Visit(NodeId root) {
    if (place_[root] >= 0) return OkStatus();
    AG_TRY(Push(root));
    while (!stack_.empty()) {
      Frame& frame = stack_.back();
      if (frame.next == frame.end) {
        Place(frame.id, NodeOf(frame.id));
        stack_.pop_back();
        continue;
      }
      const Edge operand = Resolved(*frame.next++, frame.id);
      if (place_[operand.node] < 0) AG_TRY(Push(operand.node));
    }
    return OkStatus();
  }

  Edge Placed(Edge e) const { return {place_[e.node], e.output}; }
  // By the builder's ids; -1: not placed.
  std::vector<NodeId> Places() const {
    std::vector<NodeId> places = place_;
    for (NodeId& id : places) id = std::max(id, -1);
    return places;
  }
  std::vector<Node> TakeNodes() { return std::move(nodes_); }
  std::vector<NodeId> TakeInputs() { return std::move(inputs_); }

 private:
  struct Frame {
    NodeId id;
    const Edge* next;  // The next operand to visit.
    const Edge* end;
  };

  const Node& NodeOf(NodeId id) const {
    return id < state_.base.size() ? old_[id] : state_.node(id);
  }

  // Returns the edge that `reader` reads as its operand `e`.
  Edge Resolved(Edge e, NodeId reader) const {
    const auto node = static_cast<size_t>(e.node);
    const bool may_be_replaced = node < state_.is_replaced.size() && state_.is_replaced[node] != 0;
    return may_be_replaced ? state_.Resolve(e, state_.SinceOf(reader)) : e;
  }

  Status Push(NodeId id) {
    const Node& node = NodeOf(id);
    if (place_[id] == kOpen) {
      return Err(StatusCode::kInvalidArgument, "graph: a cycle goes through node {}, {}", id,
                 Info(node.op).text_name);
    }
    if (node.op == OpKind::kInput) {
      return Err(StatusCode::kInvalidArgument, "graph: reads node {}, a forgotten input", id);
    }
    if (node.inputs.empty()) {
      Place(id, node);
      return OkStatus();
    }
    place_[id] = kOpen;
    stack_.push_back({id, node.inputs.data(), node.inputs.data() + node.inputs.size()});
    return OkStatus();
  }

  void Place(NodeId id, const Node& node) {
    place_[id] = static_cast<NodeId>(nodes_.size());
    nodes_.push_back(node);
    for (Edge& e : nodes_.back().inputs) e = Placed(Resolved(e, id));
  }

  const State& state_;
  const Node* const old_;      // Those of the base.
  std::vector<NodeId> place_;  // By the builder's id: kUnseen, kOpen or the new id.
  std::vector<Node> nodes_;
  std::vector<NodeId> inputs_;
  std::vector<Frame> stack_;
};

int GraphBuilder::size() const { return state_->size(); }

StatusOr<Graph> GraphBuilder::Build(std::vector<NodeId>* place) const {
  if (state_->outputs.empty()) return Err(StatusCode::kInvalidArgument, "graph: has no output");
  Walk walk(*state_);
  walk.PlaceInputs();
  std::vector<GraphOutput> outputs;
  outputs.reserve(state_->outputs.size());
  for (const BuilderOutput& o : state_->outputs) {
    const Edge edge = state_->Resolve(o.output.edge, o.since);
    AG_TRY(walk.Visit(edge.node));
    outputs.push_back({walk.Placed(edge), o.output.name});
  }
  std::vector<NodeId> inputs = walk.TakeInputs();
  if (place != nullptr) *place = walk.Places();
  return Graph(Graph::IndexGraph(walk.TakeNodes(), std::move(inputs), state_->input_names,
                                 std::move(outputs)));
}

}  // namespace ag
