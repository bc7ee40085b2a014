#include "server/pipeline/remap_plan.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>

#include "graph/structure_hash.h"
#include "plan/format/plan_validate.h"
#include "plan/segments.h"

namespace ag {
namespace {

using NodeMap = std::map<NodeId, NodeId>;

// Returns one hash per node over everything that reads its results, down to the graph's outputs. It
// distinguishes two equal nodes that read the same. Linear in the uses of the graph.
std::vector<uint64_t> HashesOfReaders(const Graph& graph) {
  std::vector<uint64_t> hashes(graph.size(), 0);
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    const Edge edge = graph.outputs()[i].edge;
    hashes[edge.node] += Mix(MixIn(static_cast<uint64_t>(edge.output), i + 1));
  }
  for (NodeId id = graph.size() - 1; id >= 0; --id) {
    const Node& node = graph.node(id);
    for (size_t output = 0; output < node.outputs.size(); ++output) {
      for (const Use& use : graph.uses({id, static_cast<int32_t>(output)})) {
        const bool swaps = Has(graph.node(use.node).op, kCommutative);
        const uint64_t place = MixIn(output, swaps ? 0 : static_cast<uint64_t>(use.index));
        hashes[id] += MixIn(place, hashes[use.node]);  // In any order.
      }
    }
    hashes[id] = MixIn(hashes[id], node.hash.a);
  }
  return hashes;
}

// Finds each computed node of one graph in the other. Invariant: nodes are visited in topological
// order, so all computed inputs of a node have been matched before it; its match is among the
// readers of its first computed input's match. Of equal candidates it takes the first that is still
// free.
class NodeMatch {
 public:
  NodeMatch(const Graph& from, const Graph& to)
      : from_(from),
        to_(to),
        readers_from_(HashesOfReaders(from)),
        readers_to_(HashesOfReaders(to)),
        taken_(to.size()) {}

  StatusOr<NodeMap> Run() {
    if (from_.inputs().size() != to_.inputs().size()) {
      return Err(StatusCode::kFailedPrecondition, "{} inputs became {}", from_.inputs().size(),
                 to_.inputs().size());
    }
    for (size_t i = 0; i < from_.inputs().size(); ++i) {
      const NodeId x = from_.inputs()[i], y = to_.inputs()[i];
      if (from_.node(x).outputs != to_.node(y).outputs) return Differs(x);
      nodes_[x] = y;
    }
    for (NodeId id = 0; id < from_.size(); ++id) {
      if (from_.is_constant(id) || from_.node(id).op == OpKind::kInput) continue;
      const NodeId found = Find(id);
      if (found < 0) return Differs(id);
      nodes_[id] = found;
      taken_[found] = true;
    }
    size_t computed = 0;
    for (NodeId id = 0; id < to_.size(); ++id) computed += to_.is_constant(id) ? 0 : 1;
    if (computed == nodes_.size()) return nodes_;
    return Err(StatusCode::kFailedPrecondition, "{} operators became {}", nodes_.size(), computed);
  }

 private:
  Status Differs(NodeId id) const {
    return Err(StatusCode::kFailedPrecondition, "no operator is as {} {} was",
               Info(from_.node(id).op).name, id);
  }

  NodeId Find(NodeId id) const {
    const Node& node = from_.node(id);
    for (const Edge edge : node.inputs) {
      if (from_.is_constant(edge.node)) continue;
      NodeId first = -1;
      for (const Use& use : to_.uses({nodes_.at(edge.node), edge.output})) {
        if (readers_to_[use.node] != readers_from_[id]) continue;
        if (!taken_[use.node] && IsAs(node, use.node) && (first < 0 || use.node < first)) {
          first = use.node;
        }
      }
      return first;
    }
    return -1;
  }

  bool IsAs(const Node& x, NodeId id) const {
    const Node& y = to_.node(id);
    if (x.op != y.op || x.outputs != y.outputs || *x.attributes != *y.attributes) return false;
    if (x.inputs.size() != y.inputs.size()) return false;
    if (Reads(x, y.inputs)) return true;
    return Has(x.op, kCommutative) && Reads(x, std::array{y.inputs[1], y.inputs[0]});
  }

  bool Reads(const Node& node, std::span<const Edge> inputs) const {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Edge x = node.inputs[i], y = inputs[i];
      if (from_.type(x) != to_.type(y)) return false;
      if (from_.is_constant(x.node) != to_.is_constant(y.node)) return false;
      if (from_.is_constant(x.node)) continue;
      if (nodes_.at(x.node) != y.node || x.output != y.output) return false;
    }
    return true;
  }

  const Graph& from_;
  const Graph& to_;
  const std::vector<uint64_t> readers_from_, readers_to_;
  std::vector<bool> taken_;
  NodeMap nodes_;
};

// Moves each segment by itself: the operators of its piece are in a graph of their own.
StatusOr<Plan> RemapSegments(const Graph& from, const Plan& plan, const Graph& to,
                             const DeviceSpec& spec, const NodeMap& nodes) {
  Plan moved = plan;
  moved.graph = to.digest();
  for (Segment& segment : moved.segments) {
    for (NodeId& id : segment.nodes) id = nodes.at(id);
    std::ranges::sort(segment.nodes);
  }
  AG_LET(const std::vector<GraphPiece> pieces_from, PiecesOf(from, plan));
  AG_LET(const std::vector<GraphPiece> pieces_to, PiecesOf(to, moved));
  for (size_t s = 0; s < moved.segments.size(); ++s) {
    AG_LET(moved.segments[s].plan,
           RemapPlan(pieces_from[s].graph, plan.segments[s].plan, pieces_to[s].graph, spec));
  }
  AG_TRY(ValidatePlan(to, moved, spec));
  return moved;
}

}  // namespace

Status SameOperators(const Graph& from, const Graph& to) {
  return NodeMatch(from, to).Run().status();
}

StatusOr<Plan> RemapPlan(const Graph& from, const Plan& plan, const Graph& to,
                         const DeviceSpec& spec) {
  AG_LET(const NodeMap nodes, NodeMatch(from, to).Run());
  Plan moved = plan;
  moved.graph = to.digest();
  if (!plan.segments.empty()) return RemapSegments(from, plan, to, spec, nodes);
  bool whole = true;
  const auto move = [&](NodeId& id) {
    const auto found = nodes.find(id);
    whole = whole && found != nodes.end();
    if (found != nodes.end()) id = found->second;
  };
  for (Group& group : moved.groups) {
    for (NodeId& id : group.nodes) move(id);
    for (Port& port : group.inputs) move(port.edge.node);
    for (Port& port : group.outputs) move(port.edge.node);
  }
  for (Place& place : moved.places) move(place.port.edge.node);
  for (Group& group : moved.groups) std::ranges::sort(group.nodes);
  if (!whole) return Err(StatusCode::kFailedPrecondition, "the plan names a folded constant");
  std::sort(moved.places.begin(), moved.places.end(),
            [](const Place& a, const Place& b) { return a.port < b.port; });
  AG_TRY(ValidatePlan(to, moved, spec));
  return moved;
}

}  // namespace ag
