#include "rules/match/child_graphs.h"

#include <algorithm>

#include "graph/passes/clean_up.h"
#include "rules/match/applier.h"
#include "rules/match/graph_change.h"
#include "rules/match/matcher.h"
#include "rules/match/rule_clean_up.h"

namespace ag {
namespace {

// Whether another constant of the graph equals constant `id`.
bool HasEqualConstant(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  for (NodeId other = 0; other < graph.size(); ++other) {
    const Node& o = graph.node(other);
    if (o.op == OpKind::kConstant && other != id && o.constant->digest == node.constant->digest &&
        o.outputs == node.outputs) {
      return true;
    }
  }
  return false;
}

// Whether another node computes the same as `id` from the same operands.
bool HasTwin(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (Has(node.op, kBarrier)) return false;
  if (node.inputs.empty()) return false;
  const bool swaps = Has(node.op, kCommutative) && node.inputs.size() == 2;
  for (const Use& use : graph.uses(node.inputs[0])) {
    const Node& other = graph.node(use.node);
    if (use.node == id || other.op != node.op || !(*other.attributes == *node.attributes)) continue;
    if (other.inputs == node.inputs) return true;
    if (swaps && other.inputs[0] == node.inputs[1] && other.inputs[1] == node.inputs[0])
      return true;
  }
  return false;
}

bool StopAtFirst(void* context, const Bindings&, int) {
  *static_cast<bool*>(context) = true;
  return false;
}

// Whether a clean-up rule matches near the change. No clean-up rule has families or several roots;
// rules that have count as matching (AreLocal).
bool AnyMatches(const Graph& graph, const RuleIndex& rules, const GraphChange& change) {
  const NodeIndex index(graph);
  for (const auto& [id, distance] : change.above) {
    if (!MayBeRoot(graph, id)) continue;
    for (const int r : rules.ByRoot(graph.node(id).op)) {
      const IndexedRule& rule = rules.rules()[r];
      if (distance > rule.reach || !rule.MayMatch(graph, id)) continue;
      bool found = false;
      Matcher(graph, index, *rule.pattern, StopAtFirst, &found).RunAt(id);
      if (found) return true;
    }
  }
  return false;
}

bool AreLocal(const RuleIndex& rules) {
  return std::all_of(rules.rules().begin(), rules.rules().end(), IsLocal);
}

}  // namespace

ChildGraphs::ChildGraphs(const Graph& parent, const RuleIndex& clean_up, const Options& options)
    : parent_(parent), clean_up_(clean_up), options_(options), patch_(parent) {}

StatusOr<StructureHash> ChildGraphs::Try(const Rewrite& rewrite) {
  patch_.Clear();
  AG_TRY(ApplyTo(&patch_, *rewrite.rule->pattern, *rewrite.bindings), "{}", rewrite.rule->name);
  if (options_.parent_is_clean) AG_TRY(RemoveNoOps(&patch_), "{}", rewrite.rule->name);
  const StatusOr<StructureHash> hash = patch_.Hash();
  if (!hash.ok()) {  // The types were right, so this is a cycle through the roots.
    return Err(StatusCode::kFailedPrecondition, "{}: {}", rewrite.rule->name,
               Message(hash.status()));
  }
  hash_ = *hash;
  return hash_;
}

// Whether what is to be cleaned up in a child is near its change.
bool ChildGraphs::IsCleanUpNear() const { return options_.parent_is_clean && AreLocal(clean_up_); }

// Whether CleanUp would change the child. `place` belongs to the patch. In a clean parent nothing
// is left to do, so only the rewrite can make work: no-ops and twins begin at changed nodes,
// clean-up rules match above them.
bool ChildGraphs::NeedsCleanUp(const Graph& child, const std::vector<NodeId>& place) const {
  if (!IsCleanUpNear()) return true;
  for (size_t added = static_cast<size_t>(parent_.size()); added < place.size(); ++added) {
    if (place[added] < 0 || child.node(place[added]).op != OpKind::kConstant) continue;
    if (HasEqualConstant(child, place[added])) return true;
  }
  const GraphChange change = FindChange(parent_, child, place, clean_up_.reach_max());
  for (const NodeId id : change.changed) {
    if (IsRemovable(child, id) || HasTwin(child, id)) return true;
  }
  return AnyMatches(child, clean_up_, change);
}

StatusOr<ChildGraph> ChildGraphs::Make() {
  ChildGraph child{.hash = hash_};
  AG_LET(child.graph, patch_.Build(&child.place));
  if (child.graph.size() > options_.nodes_max) {
    return Err(StatusCode::kResourceExhausted, "graph: {} nodes, at most {}", child.graph.size(),
               options_.nodes_max);
  }
  child.is_local = !NeedsCleanUp(child.graph, child.place);
  child.place.resize(static_cast<size_t>(parent_.size()));
  if (child.is_local) return child;
  const Graph* const clean_parent = IsCleanUpNear() ? &parent_ : nullptr;
  AG_LET(child.graph, CleanUpChild(child.graph, clean_up_, clean_parent, &child.place));
  child.hash = HashOfStructure(child.graph);
  return child;
}

}  // namespace ag
