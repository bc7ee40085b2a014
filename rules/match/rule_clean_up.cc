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

// Applies the rule at every place where it matches, but not at places that share a node with one it
// has changed. Returns the number of applications.
StatusOr<int> ApplyEverywhere(const Rule& rule, const NodeIndex& index, Graph* graph) {
  const auto matches = FindMatches(*graph, index, *rule.pattern, /*subsets_max=*/0);
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
  AG_LET(*graph, builder.Build());
  return count;
}

StatusOr<Graph> RunPasses(Graph graph) {
  for (int round = 0; round < kRoundsMax; ++round) {
    const Graph before = graph;
    AG_LET(graph, RemoveNoOps(graph));
    AG_LET(graph, Dedupe(graph));
    if (graph.SharesAll(before) || graph.digest() == before.digest()) return graph;
  }
  return Err(StatusCode::kInternal, "clean-up passes do not settle after {} rounds", kRoundsMax);
}

}  // namespace

StatusOr<Graph> CleanUp(const Graph& input, const RuleSet& rules, std::vector<CleanUpStep>* steps,
                        const OnRewritten& on_rewritten) {
  AG_LET(Graph graph, RunPasses(input));
  std::map<std::string, int> counts;
  for (int round = 0; round < kRoundsMax; ++round) {
    int changed = 0;
    std::optional<NodeIndex> index;  // The index of the present `graph`.
    for (const Rule& rule : rules.rules()) {
      if (!rule.clean_up) continue;
      if (!index) index.emplace(graph);
      AG_LET(const int count, ApplyEverywhere(rule, *index, &graph));
      if (count == 0) continue;
      if (on_rewritten) on_rewritten(graph, rule.name);
      index.reset();
      counts[rule.name] += count;
      changed += count;
    }
    if (changed == 0) {
      if (steps != nullptr) {
        for (const auto& [rule, count] : counts) steps->push_back({rule, count});
      }
      return graph;
    }
    AG_LET(graph, RunPasses(graph));
  }
  return Err(StatusCode::kInternal, "clean-up rules do not settle after {} rounds", kRoundsMax);
}

}  // namespace ag
