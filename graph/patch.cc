#include "graph/patch.h"

#include <algorithm>
#include <array>

#include "graph/graph_data.h"
#include "graph/make_node.h"

namespace ag {

namespace {

bool IsCommutative(OpKind op) {
  static const auto& table = *new std::array<bool, kOpKindCount>([] {
    std::array<bool, kOpKindCount> is{};
    for (const OpInfo& info : AllOps())
      is[static_cast<size_t>(info.kind)] = Has(info.kind, kCommutative);
    return is;
  }());
  return table[static_cast<size_t>(op)];
}

}  // namespace

GraphPatch::GraphPatch(const Graph& graph) : base_(graph) {
  const auto nodes = static_cast<size_t>(base_.size());
  is_replaced_.assign(nodes, 0);
  readers_.reserve(nodes);
  for (NodeId id = 0; id < base_.size(); ++id) {
    if (!base_.operands(id).empty()) readers_.push_back(id);
  }
}

void GraphPatch::Clear() {
  added_.clear();
  replacements_.clear();
  is_replaced_.resize(static_cast<size_t>(base_.size()));
  for (const NodeId id : replaced_nodes_) {
    if (id < base_.size()) is_replaced_[id] = 0;
  }
  replaced_nodes_.clear();
}

const Node& GraphPatch::node(NodeId id) const {
  AG_CHECK(id >= 0 && id < size());
  return id < base_.size() ? base_.node(id) : added_[static_cast<size_t>(id - base_.size())];
}

const TensorType& GraphPatch::type(Edge e) const { return node(e.node).outputs[e.output]; }

NodeId GraphPatch::Append(Node node) {
  added_.push_back(std::move(node));
  is_replaced_.push_back(0);
  return size() - 1;
}

Edge GraphPatch::Constant(TensorType type, const Digest& digest, std::string_view bytes) {
  return {Append(MakeConstantNode(std::move(type), digest, bytes)), 0};
}

StatusOr<NodeId> GraphPatch::Add(OpKind op, std::span<const Edge> inputs, Attributes attributes) {
  absl::InlinedVector<TensorType, 3> types;
  for (const Edge& e : inputs) {
    AG_CHECK(Resolve(e) == e);
    types.push_back(type(e));
  }
  AG_LET(Node node, MakeOperatorNode(op, inputs, types, std::move(attributes)));
  return Append(std::move(node));
}

Status GraphPatch::Replace(Edge from, Edge to) {
  to = Resolve(to);
  if (type(from) != type(to)) {
    return Err(StatusCode::kInvalidArgument, "replace {}: expected {}, got {}",
               Info(node(from.node).op).text_name, type(from).ToString(), type(to).ToString());
  }
  if (from == to) return OkStatus();
  replacements_.push_back({from, to});
  if (is_replaced_[from.node] == 0) replaced_nodes_.push_back(from.node);
  is_replaced_[from.node] = 1;
  return OkStatus();
}

// Ends because each step uses a later replacement than the step before.
Edge GraphPatch::ReplacementOf(Edge e) const {
  auto since = replacements_.begin();
  while (IsReplaced(e.node)) {
    const auto next =
        std::find_if(since, replacements_.end(), [&](const Replacement& r) { return r.from == e; });
    if (next == replacements_.end()) break;
    since = next + 1;
    e = next->to;
  }
  return e;
}

// ---- The hash.
//
// A node's hash depends on the node alone and on the hashes of its operands. So only added nodes
// and nodes above a replaced edge get a new hash (hash_); all others keep base_hash_. MarkChanged
// finds these nodes, in one sweep over the readers behind the first replaced node. HashIfReady
// hashes most of them in order. HashBelow hashes the rest depth first, starting at the outputs. It
// ends because it opens each node once; meeting an open node again is a cycle. Cost: the sweep, and
// the operands of added and changed nodes.

void GraphPatch::HashBase() {
  const auto nodes = static_cast<size_t>(base_.size());
  own_.reserve(nodes);
  for (const Node& node : base_.nodes()) own_.push_back(node.hash);
  base_hash_.resize(nodes);
  hash_.resize(nodes);
  state_.assign(nodes, kAsBefore);
  for (size_t i = 0; i < base_.inputs().size(); ++i) {
    const NodeId id = base_.inputs()[i];
    own_[id] = MixIn(own_[id], {i + 1, ~i});
  }
  uint64_t barriers = 0;
  for (NodeId id = 0; id < base_.size(); ++id) {
    const Node& node = base_.node(id);
    // Every opaque node has its own hash: it may have effects, or be random.
    if (Has(node.op, kBarrier)) own_[id].a = MixIn(own_[id].a, ++barriers);
    base_hash_[id] = HashOfOperands(node, own_[id], Edges::kOriginal);
  }
}

StructureHash GraphPatch::HashOfEdge(Edge e) const {
  const bool as_before = e.node < base_.size() && state_[e.node] == kAsBefore;
  const StructureHash& hash = as_before ? base_hash_[e.node] : hash_[e.node];
  const auto output = static_cast<uint64_t>(e.output);
  return {hash.a + output * 0x9e3779b97f4a7c15ull, hash.b ^ (output << 32)};
}

StructureHash GraphPatch::HashOfOperands(const Node& node, StructureHash own, Edges edges) const {
  const auto hash_of = [&](Edge e) {
    return HashOfEdge(edges == Edges::kPatched ? Resolve(e) : e);
  };
  if (node.inputs.size() == 2 && IsCommutative(node.op)) {
    const StructureHash x = hash_of(node.inputs[0]);
    const StructureHash y = hash_of(node.inputs[1]);
    return MixIn(MixIn(own, std::min(x, y)), std::max(x, y));
  }
  for (const Edge& e : node.inputs) own = MixIn(own, hash_of(e));
  return own;
}

// Marks the nodes above the replaced edges. One sweep suffices: operands come before their readers.
void GraphPatch::MarkChanged() {
  const auto nodes = static_cast<size_t>(base_.size());
  for (const NodeId id : changed_) state_[id] = kAsBefore;
  changed_.clear();
  state_.resize(nodes);
  state_.resize(static_cast<size_t>(size()), kChanged);
  hash_.resize(static_cast<size_t>(size()));
  if (replaced_nodes_.empty()) return;
  const NodeId first = *std::min_element(replaced_nodes_.begin(), replaced_nodes_.end());
  for (auto at = std::upper_bound(readers_.begin(), readers_.end(), first); at != readers_.end();
       ++at) {
    const NodeId id = *at;
    for (const Edge e : base_.operands(id)) {
      if (state_[e.node] != kChanged && (is_replaced_[e.node] == 0 || Resolve(e) == e)) continue;
      state_[id] = kChanged;
      changed_.push_back(id);
      break;
    }
  }
}

// Hashes the node when the hashes of all its operands are known; in order, most nodes are ready.
void GraphPatch::HashIfReady(NodeId id, const Node& node) {
  for (const Edge& e : node.inputs) {
    const State state = state_[Resolve(e).node];
    if (state != kDone && state != kAsBefore) return;
  }
  const StructureHash own = id < base_.size() ? own_[id] : node.hash;
  hash_[id] = HashOfOperands(node, own, Edges::kPatched);
  state_[id] = kDone;
}

// Hashes `root` and the changed nodes that it depends on, depth first with its own stack.
Status GraphPatch::HashBelow(NodeId root) {
  struct Frame {
    NodeId id;
    size_t next;  // The next operand to visit.
  };
  std::vector<Frame> stack;
  const auto open = [&](NodeId id) {
    if (state_[id] == kDone || state_[id] == kAsBefore) return OkStatus();
    if (state_[id] == kOpen) {
      return Err(StatusCode::kInvalidArgument, "graph: a cycle goes through node {}, {}", id,
                 Info(node(id).op).text_name);
    }
    state_[id] = kOpen;
    stack.push_back({id, 0});
    return OkStatus();
  };
  AG_TRY(open(root));
  while (!stack.empty()) {
    const NodeId id = stack.back().id;
    const Node& n = node(id);
    if (stack.back().next < n.inputs.size()) {
      const Edge operand = n.inputs[stack.back().next++];
      AG_TRY(open(Resolve(operand).node));
      continue;
    }
    hash_[id] = HashOfOperands(n, id < base_.size() ? own_[id] : n.hash, Edges::kPatched);
    state_[id] = kDone;
    stack.pop_back();
  }
  return OkStatus();
}

StatusOr<StructureHash> GraphPatch::Hash() {
  if (own_.empty()) HashBase();
  MarkChanged();
  for (size_t i = 0; i < added_.size(); ++i) {
    HashIfReady(base_.size() + static_cast<NodeId>(i), added_[i]);
  }
  const Node* nodes = base_.nodes().data();
  for (const NodeId id : changed_) HashIfReady(id, nodes[id]);
  StructureHash hash{1, 2};
  for (const GraphOutput& output : base_.outputs()) {
    const Edge e = Resolve(output.edge);
    if (state_[e.node] != kDone && state_[e.node] != kAsBefore) AG_TRY(HashBelow(e.node));
    hash = MixIn(hash, HashOfEdge(e));
  }
  return hash;
}

// ---- The graph.

// Lays out the live nodes as GraphBuilder does: in the post-order of a walk from the outputs. Each
// node is pushed once; meeting an open node again is a cycle. Linear in nodes and edges.
class GraphPatch::Layout {
 public:
  Layout(const GraphPatch& patch, std::vector<NodeId>* place) : patch_(patch), place_(*place) {
    place_.assign(static_cast<size_t>(patch.size()), kUnseen);
    order_.reserve(place_.size());
    for (const NodeId id : patch.base_.inputs()) Place(id);
  }

  Status Visit(NodeId root) {
    AG_TRY(Push(root));
    while (!stack_.empty()) {
      Frame& frame = stack_.back();
      if (frame.next == frame.end) {
        Place(frame.id);
        stack_.pop_back();
        continue;
      }
      const Edge operand = patch_.Resolve(*frame.next++);
      AG_TRY(Push(operand.node));
    }
    return OkStatus();
  }

  // Returns the nodes in their order, with operands named by new ids.
  std::vector<Node> Take() {
    std::vector<Node> nodes;
    nodes.reserve(order_.size());
    const Node* old = patch_.base_.nodes().data();
    for (const NodeId id : order_) {
      nodes.push_back(id < patch_.base_.size() ? old[id] : patch_.node(id));
      for (Edge& e : nodes.back().inputs) e = Placed(patch_.Resolve(e));
    }
    for (NodeId& id : place_) id = std::max(id, -1);
    return nodes;
  }

  Edge Placed(Edge e) const { return {place_[e.node], e.output}; }

 private:
  static constexpr NodeId kUnseen = -1;
  static constexpr NodeId kOpen = -2;
  struct Frame {
    NodeId id;
    const Edge* next;  // The next operand to visit.
    const Edge* end;
  };

  Status Push(NodeId id) {
    if (place_[id] >= 0) return OkStatus();
    if (place_[id] == kOpen) {
      return Err(StatusCode::kInvalidArgument, "graph: a cycle goes through node {}, {}", id,
                 Info(patch_.node(id).op).text_name);
    }
    const bool is_old = id < patch_.base_.size();
    const std::span<const Edge> operands =
        is_old ? patch_.base_.operands(id) : std::span<const Edge>(patch_.node(id).inputs);
    if (operands.empty()) {
      Place(id);
      return OkStatus();
    }
    place_[id] = kOpen;
    stack_.push_back({id, operands.data(), operands.data() + operands.size()});
    return OkStatus();
  }

  void Place(NodeId id) {
    place_[id] = static_cast<NodeId>(order_.size());
    order_.push_back(id);
  }

  const GraphPatch& patch_;
  std::vector<NodeId>& place_;  // By the patch's id: kUnseen, kOpen or the new id.
  std::vector<NodeId> order_;
  std::vector<Frame> stack_;
};

StatusOr<Graph> GraphPatch::Build(std::vector<NodeId>* place) const {
  std::vector<NodeId> own;
  Layout layout(*this, place == nullptr ? &own : place);
  std::vector<GraphOutput> outputs;
  std::vector<NodeId> inputs;
  std::vector<std::string> names;
  for (const GraphOutput& output : base_.outputs()) {
    const Edge e = Resolve(output.edge);
    AG_TRY(layout.Visit(e.node));
    outputs.push_back({layout.Placed(e), output.name});
  }
  for (size_t i = 0; i < base_.inputs().size(); ++i) {
    inputs.push_back(layout.Placed({base_.inputs()[i], 0}).node);
    names.push_back(base_.input_name(i));
  }
  return Graph(
      Graph::IndexGraph(layout.Take(), std::move(inputs), std::move(names), std::move(outputs)));
}

}  // namespace ag
