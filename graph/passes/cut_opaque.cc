#include "graph/passes/cut_opaque.h"

#include "absl/container/flat_hash_map.h"
#include "graph/passes/rebuild.h"

namespace ag {
namespace {

// The borders of the opaque nodes of a graph, in the order that cut graphs declare them.
struct Borders {
  std::vector<NodeId> nodes;
  std::vector<Edge> gives;  // All outputs of opaque nodes; extra inputs of the cut graph.
  // Their operands that must be computed first; extra outputs of the cut graph.
  std::vector<Edge> reads;
};

// Returns, by node, whether it is cut out.
std::vector<bool> CutNodes(const Graph& graph, const IsCut& is_cut) {
  std::vector<bool> cut;
  for (const Node& node : graph.nodes()) cut.push_back(Has(node.op, kBarrier) && is_cut(node));
  return cut;
}

Borders BordersOf(const Graph& graph, const std::vector<bool>& cut) {
  Borders borders;
  // False for inputs, constants and outputs of nodes that are cut out: they need no cut graph.
  const auto is_computed = [&](NodeId id) {
    return graph.node(id).op != OpKind::kInput && !graph.is_constant(id) && !cut[id];
  };
  absl::flat_hash_map<Edge, bool> seen;
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (!cut[id]) continue;
    borders.nodes.push_back(id);
    for (const Edge& e : graph.node(id).inputs) {
      if (is_computed(e.node) && seen.emplace(e, true).second) borders.reads.push_back(e);
    }
    const auto outputs = static_cast<int32_t>(graph.node(id).outputs.size());
    for (int32_t i = 0; i < outputs; ++i) borders.gives.push_back({id, i});
  }
  return borders;
}

Status CheckBorders(const Graph& original, const Graph& rewritten, const Borders& borders) {
  const size_t inputs = original.inputs().size() + borders.gives.size();
  const size_t outputs = original.outputs().size() + borders.reads.size();
  if (rewritten.inputs().size() == inputs && rewritten.outputs().size() == outputs) {
    return OkStatus();
  }
  return Err(StatusCode::kInvalidArgument,
             "stitch: expected {} inputs and {} outputs, got {} and {}", inputs, outputs,
             rewritten.inputs().size(), rewritten.outputs().size());
}

class Stitcher {
 public:
  Stitcher(const Graph& original, const Graph& rewritten, const IsCut& is_cut)
      : original_(original),
        rewritten_(rewritten),
        cut_(CutNodes(original, is_cut)),
        borders_(BordersOf(original, cut_)),
        builder_(rewritten) {}

  StatusOr<Graph> Run() {
    AG_TRY(CheckBorders(original_, rewritten_, borders_));
    MapBorders();
    const std::vector<bool> wanted = WantedNodes();
    for (NodeId id = 0; id < original_.size(); ++id) {
      if (wanted[static_cast<size_t>(id)]) AG_TRY(Copy(id));
    }
    builder_.ForgetOutputs();
    for (size_t i = 0; i < original_.outputs().size(); ++i) {
      builder_.Output(rewritten_.outputs()[i].edge, original_.outputs()[i].name);
    }
    for (size_t i = 0; i < borders_.gives.size(); ++i) {
      const Edge input{rewritten_.inputs()[original_.inputs().size() + i], 0};
      AG_TRY(builder_.Replace(input, made_.at(borders_.gives[i])), "stitch");
      builder_.ForgetInput(input);
    }
    StatusOr<Graph> graph = builder_.Build();
    return graph.ok() ? std::move(graph) : Within(graph.status(), "stitch");
  }

 private:
  void MapBorders() {
    for (size_t i = 0; i < original_.inputs().size(); ++i) {
      made_[Edge{original_.inputs()[i], 0}] = Edge{rewritten_.inputs()[i], 0};
    }
    for (size_t i = 0; i < borders_.reads.size(); ++i) {
      made_[borders_.reads[i]] = rewritten_.outputs()[original_.outputs().size() + i].edge;
    }
  }

  // Returns which nodes to copy: those cut out, and the constants or recipes that they read.
  std::vector<bool> WantedNodes() const {
    std::vector<bool> wanted(static_cast<size_t>(original_.size()));
    for (NodeId id = original_.size() - 1; id >= 0; --id) {
      const auto at = static_cast<size_t>(id);
      wanted[at] = wanted[at] || cut_[at];
      if (!wanted[at]) continue;
      for (const Edge& e : original_.node(id).inputs) {
        if (original_.is_constant(e.node)) wanted[static_cast<size_t>(e.node)] = true;
      }
    }
    return wanted;
  }

  Status Copy(NodeId id) {
    const Node& node = original_.node(id);
    std::vector<Edge> operands;
    for (const Edge& e : node.inputs) operands.push_back(made_.at(e));
    AG_LET(const NodeId made, builder_.AddCopy(node, operands));
    const auto outputs = static_cast<int32_t>(node.outputs.size());
    for (int32_t i = 0; i < outputs; ++i) made_[Edge{id, i}] = Edge{made, i};
    return OkStatus();
  }

  const Graph& original_;
  const Graph& rewritten_;
  const std::vector<bool> cut_;
  const Borders borders_;
  GraphBuilder builder_;
  absl::flat_hash_map<Edge, Edge> made_;  // Edges of the original in the builder.
};

}  // namespace

StatusOr<OpaqueCut> CutOpaque(const Graph& original, const IsCut& is_cut) {
  const std::vector<bool> cut = CutNodes(original, is_cut);
  const Borders borders = BordersOf(original, cut);
  if (borders.nodes.empty()) return OpaqueCut{original, {}};
  Rebuild rebuild(original);
  for (size_t i = 0; i < borders.gives.size(); ++i) {
    const Edge give = borders.gives[i];
    rebuild.Map(give,
                rebuild.builder().Input(fmt::format("opaque.gives.{}", i), original.type(give)));
  }
  for (NodeId id = 0; id < original.size(); ++id) {
    const bool is_copied = original.node(id).op != OpKind::kInput && !cut[id];
    if (is_copied) AG_TRY(rebuild.Copy(id));
  }
  rebuild.DeclareOutputs();
  for (size_t i = 0; i < borders.reads.size(); ++i) {
    rebuild.builder().Output(rebuild.New(borders.reads[i]), fmt::format("opaque.reads.{}", i));
  }
  AG_LET(Graph graph, rebuild.builder().Build());
  return OpaqueCut{std::move(graph), borders.nodes};
}

StatusOr<Graph> Stitch(const Graph& original, const Graph& rewritten, const IsCut& is_cut) {
  return Stitcher(original, rewritten, is_cut).Run();
}

}  // namespace ag
