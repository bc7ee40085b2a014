#include "rules/match/lone_rewrite.h"

#include <algorithm>
#include <map>
#include <set>

#include "rules/match/matcher.h"

namespace ag {
namespace {

constexpr int kSubsetsMax = 8;

Rewrite AsRewrite(const Rule& rule, Bindings bindings) {
  Rewrite rewrite{.rule = &rule};
  for (const std::vector<Edge>& roots : bindings.roots) {
    rewrite.roots.insert(rewrite.roots.end(), roots.begin(), roots.end());
  }
  std::ranges::sort(rewrite.roots);
  rewrite.bindings = std::make_shared<const Bindings>(std::move(bindings));
  return rewrite;
}

// Copies nodes of a graph, in its order, into a graph of their own.
class Cut {
 public:
  explicit Cut(const Graph& graph) : graph_(graph) {}

  StatusOr<Graph> Run(const std::set<NodeId>& nodes, const std::vector<Edge>& roots) {
    for (const NodeId id : nodes) AG_TRY(Copy(id, nodes));
    for (const Edge& root : roots) {
      builder_.Output(made_.at(root), "y" + std::to_string(outputs_++));
    }
    return builder_.Build();
  }

 private:
  Status Copy(NodeId id, const std::set<NodeId>& nodes) {
    if (made_.contains({id, 0})) return OkStatus();
    const Node& node = graph_.node(id);
    std::vector<Edge> operands;
    for (const Edge& e : node.inputs) {
      if (nodes.contains(e.node) || graph_.is_constant(e.node)) {
        AG_TRY(Copy(e.node, nodes));
      } else if (!made_.contains(e)) {
        made_[e] = builder_.Input("x" + std::to_string(inputs_++), graph_.type(e));
      }
      operands.push_back(made_.at(e));
    }
    AG_LET(const NodeId copy, builder_.AddCopy(node, operands));
    for (int32_t i = 0; i < static_cast<int32_t>(node.outputs.size()); ++i) {
      made_[{id, i}] = {copy, i};
    }
    return OkStatus();
  }

  const Graph& graph_;
  GraphBuilder builder_;
  std::map<Edge, Edge> made_;
  int inputs_ = 0, outputs_ = 0;
};

}  // namespace

std::vector<Rewrite> PlacesOf(const Graph& graph, const Rule& rule, int places_max) {
  std::vector<Rewrite> places;
  for (Bindings& bindings : FindMatches(graph, NodeIndex(graph), *rule.pattern, kSubsetsMax)) {
    if (places.size() >= static_cast<size_t>(places_max)) break;
    places.push_back(AsRewrite(rule, std::move(bindings)));
  }
  return places;
}

StatusOr<LoneRewrite> CutOut(const Graph& graph, const Rewrite& rewrite) {
  std::set<NodeId> nodes(rewrite.bindings->nodes.begin(), rewrite.bindings->nodes.end());
  for (const Edge& root : rewrite.roots) nodes.insert(root.node);
  AG_LET(Graph before, Cut(graph).Run(nodes, rewrite.roots));
  for (const Rewrite& place : PlacesOf(before, *rewrite.rule, kSubsetsMax)) {
    if (place.roots.size() != rewrite.roots.size()) continue;
    StatusOr<Graph> after = Apply(before, place);
    if (after.ok()) return LoneRewrite{std::move(before), *std::move(after)};
  }
  return Err(StatusCode::kFailedPrecondition, "{}: its nodes do not match by themselves",
             rewrite.rule->name);
}

}  // namespace ag
