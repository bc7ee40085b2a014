#include "lab/taso/reach.h"

#include <set>

#include "graph/passes/clean_up.h"
#include "lab/taso/canonical.h"
#include "rules/match/applier.h"
#include "rules/match/matcher.h"

namespace ag {
namespace {

constexpr int kSubsetsMax = 8;  // As in FindRewrites.

struct State {
  Graph graph;
  std::vector<std::string> rules;
};

StatusOr<Graph> Tidy(const Graph& graph) {
  AG_LET(const Graph simple, RemoveNoOps(graph));
  return Dedupe(simple);
}

class Search {
 public:
  Search(const Graph& to, const RuleSet& rules, const ReachOptions& options)
      : rules_(rules),
        options_(options),
        as_written_(TasoFormOf(to, TasoForm::kAsWritten)),
        regrouped_(TasoFormOf(to, TasoForm::kRegrouped)) {}

  std::optional<ReachPath> Run(const Graph& from) {
    Visit(from, {});
    for (int step = 0; !path_ && step < options_.steps_max; ++step) {
      std::vector<State> states;
      std::swap(states, next_);
      for (const State& state : states) {
        if (path_ || static_cast<int>(seen_.size()) > options_.graphs_max) break;
        Expand(state);
      }
    }
    return path_;
  }

 private:
  void Visit(const Graph& graph, std::vector<std::string> rules) {
    if (path_) return;
    const StatusOr<Graph> tidy = Tidy(graph);
    if (!tidy.ok()) return;
    const std::string form = TasoFormOf(*tidy, TasoForm::kAsWritten);
    if (!seen_.insert(form).second) return;
    const bool same = form == as_written_;
    if (same || (options_.regroup && TasoFormOf(*tidy, TasoForm::kRegrouped) == regrouped_)) {
      path_ = ReachPath{std::move(rules), !same};
      return;
    }
    next_.push_back({*tidy, std::move(rules)});
  }

  void Expand(const State& state) {
    const NodeIndex index(state.graph);
    for (const Rule& rule : rules_.rules()) {
      for (const auto& match : FindMatches(state.graph, index, *rule.pattern, kSubsetsMax)) {
        GraphBuilder builder(state.graph);
        if (!ApplyTo(&builder, state.graph, *rule.pattern, match).ok()) continue;
        const StatusOr<Graph> after = builder.Build();
        if (!after.ok()) continue;  // A cycle.
        std::vector<std::string> names = state.rules;
        names.push_back(rule.name);
        Visit(*after, std::move(names));
        if (path_) return;
      }
    }
  }

  const RuleSet& rules_;
  const ReachOptions options_;
  const std::string as_written_, regrouped_;
  std::set<std::string> seen_;
  std::vector<State> next_;
  std::optional<ReachPath> path_;
};

}  // namespace

std::optional<ReachPath> FindReachPath(const Graph& from, const Graph& to, const RuleSet& rules,
                                       const ReachOptions& options) {
  const StatusOr<Graph> wanted = Tidy(to);
  if (!wanted.ok()) return std::nullopt;
  return Search(*wanted, rules, options).Run(from);
}

}  // namespace ag
