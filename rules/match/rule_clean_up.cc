// Clean-up to a fixpoint: the passes of graph/passes/clean_up.h and the clean-up rules.
#include "rules/match/rule_clean_up.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "graph/passes/clean_up.h"
#include "rules/match/applier.h"
#include "rules/match/graph_change.h"
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

// Where the rules may match in one graph.
class Places {
 public:
  // `near`: as GraphChange::above; null: everywhere.
  Places(const Graph& graph, const RuleIndex& clean_up, const GraphChange* near)
      : graph_(graph), rules_(clean_up.rules()), index_(graph), roots_(rules_.size()) {
    const auto add = [&](NodeId id, int distance) {
      if (!MayBeRoot(graph, id)) return;
      for (const int r : clean_up.ByRoot(graph.node(id).op)) {
        if (distance <= rules_[r].reach && rules_[r].MayMatch(graph, id)) roots_[r].push_back(id);
      }
    };
    if (near == nullptr) {
      for (NodeId id = 0; id < graph.size(); ++id) add(id, 0);
      return;
    }
    for (const auto& [id, distance] : near->above) add(id, distance);
    for (std::vector<NodeId>& roots : roots_) std::ranges::sort(roots);
  }

  // Returns FindMatches of a rule. One with one root is tried only where its operands may be.
  std::vector<Bindings> MatchesOf(size_t r) const {
    const RulePattern& pattern = *rules_[r].pattern;
    if (!IsLocal(rules_[r])) return FindMatches(graph_, index_, pattern, /*subsets_max=*/0);
    std::vector<Bindings> matches;
    if (roots_[r].empty()) return matches;
    Matcher matcher(graph_, index_, pattern, AddMatch, &matches);
    for (const NodeId id : roots_[r]) matcher.RunAt(id);
    return matches;
  }

 private:
  const Graph& graph_;
  const std::span<const IndexedRule> rules_;
  const NodeIndex index_;
  std::vector<std::vector<NodeId>> roots_;  // By rule, ascending.
};

// Follows nodes through one change of their graph. `moved`: as GraphBuilder::Build's; empty:
// nothing changed. Null `place`: no one asks.
void Follow(const std::vector<NodeId>& moved, std::vector<NodeId>* place) {
  if (place == nullptr || moved.empty()) return;
  for (NodeId& id : *place) id = id < 0 ? -1 : moved[id];
}

// Applies the rule at every place where it matches, but not at places that share a node with one it
// has changed. Returns the number of applications.
StatusOr<int> ApplyEverywhere(const IndexedRule& indexed, const std::vector<Bindings>& matches,
                              Graph* graph, std::vector<NodeId>* place) {
  const Rule& rule = *indexed.rule;
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

// `parent`: a graph in which no rule matches, of which `place` has the nodes; null: not given. Then
// rules can match only near what differs from it, as far as each of them sees.
StatusOr<Graph> CleanUpAll(const Graph& input, const RuleIndex& clean_up, const Graph* parent,
                           std::vector<CleanUpStep>* steps, const OnRewritten& on_rewritten,
                           std::vector<NodeId>* place) {
  AG_LET(Graph graph, RunPasses(input, place));
  const auto find_places = [&] {
    if (parent == nullptr) return Places(graph, clean_up, nullptr);
    const GraphChange near = FindChange(*parent, graph, *place, clean_up.reach_max());
    return Places(graph, clean_up, &near);
  };
  std::map<std::string, int> counts;
  for (int round = 0; round < kRoundsMax; ++round) {
    int changed = 0;
    std::optional<Places> places;  // Of the present `graph`.
    for (size_t r = 0; r < clean_up.rules().size(); ++r) {
      const IndexedRule& rule = clean_up.rules()[r];
      if (!places) places.emplace(find_places());
      AG_LET(const int count, ApplyEverywhere(rule, places->MatchesOf(r), &graph, place));
      if (count == 0) continue;
      if (on_rewritten) on_rewritten(graph, rule.rule->name);
      places.reset();
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
  return CleanUpAll(graph, clean_up, nullptr, steps, on_rewritten, nullptr);
}

bool IsLocal(const IndexedRule& rule) {
  return rule.partners == Partners::kNone && rule.pattern->each < 0;
}

StatusOr<Graph> CleanUpChild(const Graph& graph, const RuleIndex& clean_up, const Graph* parent,
                             std::vector<NodeId>* place) {
  return CleanUpAll(graph, clean_up, parent, nullptr, {}, place);
}

}  // namespace ag
