// Clean-up to a fixpoint: the passes of graph/passes/clean_up.h and the clean-up rules.
#include "rules/match/rule_clean_up.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "graph/passes/clean_up.h"
#include "rules/match/applier.h"
#include "rules/match/matcher.h"

namespace ag {
namespace {

// A round applies every rule everywhere, so about ten rounds are enough for rules that follow one
// another at one place. More than this is a bug of a rule.
constexpr int kRoundsMax = 1000;

bool Touches(const Bindings& match, const std::set<NodeId>& touched) {
  const auto is_touched = [&](NodeId id) { return touched.contains(id); };
  if (std::any_of(match.nodes.begin(), match.nodes.end(), is_touched)) return true;
  for (const auto& slot : match.slots) {
    for (const Value& value : slot) {
      const Edge* edge = std::get_if<Edge>(&value);
      if (edge != nullptr && is_touched(edge->node)) return true;
    }
  }
  return false;
}

// Whether the rule's target is well typed at the match and makes no cycle. One root cannot make
// one: the target reads only what is below it.
bool MayApply(const Rule& rule, const Bindings& match, GraphPatch* trial) {
  trial->Clear();
  if (!ApplyTo(trial, *rule.pattern, match).ok()) return false;
  return trial->replaced_nodes().size() < 2 || trial->Hash().ok();
}

bool AddMatch(void* matches, const Bindings& bindings, int) {
  static_cast<std::vector<Bindings>*>(matches)->push_back(bindings);
  return true;
}

// Returns FindMatches of the rule. A rule with one root is tried only where its operands may be.
std::vector<Bindings> MatchesOf(const IndexedRule& rule, const Graph& graph,
                                const NodeIndex& index) {
  const RulePattern& pattern = *rule.pattern;
  if (pattern.each >= 0 || rule.partners != Partners::kNone) {
    return FindMatches(graph, index, pattern, /*subsets_max=*/0);
  }
  std::vector<Bindings> matches;
  Matcher matcher(graph, index, pattern, AddMatch, &matches);
  const Term& root = pattern.sources[0];
  for (const NodeId id : root.op_class != 0 ? index.All() : index.Of(root.op)) {
    if (rule.MayMatch(graph, id)) matcher.RunAt(id);
  }
  return matches;
}

// Follows nodes through one change of their graph. `moved`: as GraphBuilder::Build's; empty:
// nothing changed. Null `place`: no one asks.
void Follow(const std::vector<NodeId>& moved, std::vector<NodeId>* place) {
  if (place == nullptr || moved.empty()) return;
  for (NodeId& id : *place) id = id < 0 ? -1 : moved[id];
}

// Applies the rule at every place where it matches, but not at places that share a node with one it
// has changed. Returns the number of applications.
StatusOr<int> ApplyEverywhere(const IndexedRule& indexed, const NodeIndex& index, Graph* graph,
                              std::vector<NodeId>* place) {
  const Rule& rule = *indexed.rule;
  const std::vector<Bindings> matches = MatchesOf(indexed, *graph, index);
  if (matches.empty()) return 0;
  std::set<NodeId> touched;
  int count = 0;
  GraphBuilder builder(*graph);
  GraphPatch trial(*graph);  // An ill-typed target would leave the builder broken.
  for (const Bindings& match : matches) {
    if (Touches(match, touched) || !MayApply(rule, match, &trial)) continue;
    AG_TRY(ApplyTo(&builder, *graph, *rule.pattern, match), "{}", rule.name);
    touched.insert(match.nodes.begin(), match.nodes.end());
    ++count;
  }
  if (count == 0) return 0;
  std::vector<NodeId> moved;
  AG_LET(*graph, builder.Build(&moved));
  Follow(moved, place);
  return count;
}

// Dedupe leaves nothing to itself, and RemoveNoOps leaves nothing where nothing is removable.
StatusOr<Graph> RunPasses(Graph graph, std::vector<NodeId>* place) {
  for (int round = 0; round < kRoundsMax; ++round) {
    std::vector<NodeId> moved;
    AG_LET(graph, RemoveNoOps(graph, &moved));
    Follow(moved, place);
    moved.clear();
    AG_LET(graph, Dedupe(graph, &moved));
    Follow(moved, place);
    if (!HasRemovable(graph)) return graph;
  }
  return Err(StatusCode::kInternal, "clean-up passes do not settle after {} rounds", kRoundsMax);
}

StatusOr<Graph> CleanUpAll(const Graph& input, const RuleIndex& clean_up,
                           std::vector<CleanUpStep>* steps, const OnRewritten& on_rewritten,
                           std::vector<NodeId>* place) {
  AG_LET(Graph graph, RunPasses(input, place));
  std::map<std::string, int> counts;
  for (int round = 0; round < kRoundsMax; ++round) {
    int changed = 0;
    std::optional<NodeIndex> index;  // The index of the present `graph`.
    for (const IndexedRule& rule : clean_up.rules()) {
      if (!index) index.emplace(graph);
      AG_LET(const int count, ApplyEverywhere(rule, *index, &graph, place));
      if (count == 0) continue;
      if (on_rewritten) on_rewritten(graph, rule.rule->name);
      index.reset();
      counts[rule.rule->name] += count;
      changed += count;
    }
    if (changed == 0) {
      if (steps != nullptr) {
        for (const auto& [rule, count] : counts) steps->push_back({rule, count});
      }
      return graph;
    }
    AG_LET(graph, RunPasses(graph, place));
  }
  return Err(StatusCode::kInternal, "clean-up rules do not settle after {} rounds", kRoundsMax);
}

}  // namespace

StatusOr<Graph> CleanUp(const Graph& graph, const RuleSet& rules, std::vector<CleanUpStep>* steps,
                        const OnRewritten& on_rewritten) {
  return CleanUp(graph, RuleIndex(rules, RuleIndex::Kind::kCleanUp), steps, on_rewritten);
}

StatusOr<Graph> CleanUp(const Graph& graph, const RuleIndex& clean_up,
                        std::vector<CleanUpStep>* steps, const OnRewritten& on_rewritten) {
  return CleanUpAll(graph, clean_up, steps, on_rewritten, nullptr);
}

StatusOr<Graph> CleanUp(const Graph& graph, const RuleIndex& clean_up, std::vector<NodeId>* place) {
  return CleanUpAll(graph, clean_up, nullptr, {}, place);
}

}  // namespace ag
