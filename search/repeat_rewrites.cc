#include "search/repeat_rewrites.h"

#include <algorithm>
#include <map>
#include <optional>

#include "rules/match/child_graphs.h"
#include "search/size_blind.h"

namespace ag {
namespace {

// Where a rewrite stands, without sizes. Roots are in any order.
struct PlaceNames {
  std::vector<uint64_t> loose, exact;
};

PlaceNames PlaceOf(const Rewrite& rewrite, std::span<const uint64_t> loose,
                   std::span<const uint64_t> exact) {
  PlaceNames place;
  for (const Edge& root : rewrite.roots) {
    place.loose.push_back(MixIn(loose[root.node], static_cast<uint64_t>(root.output)));
    place.exact.push_back(MixIn(exact[root.node], static_cast<uint64_t>(root.output)));
  }
  std::ranges::sort(place.loose);
  std::ranges::sort(place.exact);
  return place;
}

class Repetition {
 public:
  Repetition(const Graph& input, std::vector<Graph> others, const RuleSet& rules,
             const OnRewritten& on_rewritten)
      : rules_(rules),
        on_rewritten_(on_rewritten),
        clean_up_(rules, RuleIndex::Kind::kCleanUp),
        blind_(All(input, others)) {
    graphs_.push_back({input, IsClean(input)});
    for (Graph& other : others) graphs_.push_back({std::move(other), true});
  }

  StatusOr<RepeatedRewrites> Run(std::span<const RewriteStep> steps) {
    for (const RewriteStep& step : steps) {
      if (step.begins_round) AG_TRY(BeginRound());
      AG_TRY(Take(step.rewrite), "{}", step.rewrite.rule->name);
    }
    for (size_t i = 1; i < graphs_.size(); ++i) {
      AG_LET(const Graph clean, CleanUp(graphs_[i].graph, rules_));
      AG_LET(Graph ordered, blind_.Ordered(clean));
      result_.graphs.push_back(std::move(ordered));
    }
    return std::move(result_);
  }

 private:
  struct Held {
    Graph graph;
    bool is_clean = true;  // As ChildGraphsOptions::parent_is_clean.
  };

  static std::vector<Graph> All(const Graph& input, const std::vector<Graph>& others) {
    std::vector<Graph> all = {input};
    all.insert(all.end(), others.begin(), others.end());
    return all;
  }

  bool IsClean(const Graph& graph) const {
    const StatusOr<Graph> clean = CleanUp(graph, rules_);
    return clean.ok() && clean->digest() == graph.digest();
  }

  // A search cleans up the graph with which a round begins.
  Status BeginRound() {
    for (Held& held : graphs_) {
      AG_LET(held.graph, CleanUp(held.graph, rules_));
      held.is_clean = IsClean(held.graph);
    }
    return OkStatus();
  }

  const RuleSet& Only(const Rule& rule) {
    auto& only = only_[rule.name];
    if (!only) {
      std::vector<std::string> others;
      for (const Rule& other : rules_.rules()) {
        if (other.name != rule.name) others.push_back(other.name);
      }
      only = rules_.Without(others, /*strict=*/false);
    }
    return *only;
  }

  // Returns the rewrites of the rule that stand where `wanted` does: those at places with the same
  // exact names, if there are any.
  std::vector<Rewrite> Alike(const Graph& graph, const Rule& rule, const PlaceNames& wanted) {
    const std::vector<uint64_t> loose = blind_.LooseNames(graph), exact = blind_.Names(graph);
    std::vector<Rewrite> alike, same;
    for (Rewrite& rewrite : FindRewrites(graph, Only(rule))) {
      const PlaceNames place = PlaceOf(rewrite, loose, exact);
      if (place.loose != wanted.loose) continue;
      (place.exact == wanted.exact ? same : alike).push_back(std::move(rewrite));
    }
    return same.empty() ? alike : same;
  }

  StatusOr<Graph> Child(const Held& held, const Rewrite& rewrite) const {
    ChildGraphs children(held.graph, rules_, clean_up_, {.parent_is_clean = held.is_clean});
    AG_TRY(children.Try(rewrite));
    AG_LET(ChildGraph child, children.Make());
    return std::move(child.graph);
  }

  // Takes one step in the input's graph, and in all others if it has its place there.
  Status Take(const Rewrite& rewrite) {
    const Graph& graph = graphs_[0].graph;
    const PlaceNames wanted = PlaceOf(rewrite, blind_.LooseNames(graph), blind_.Names(graph));
    const std::vector<Rewrite> first = Alike(graph, *rewrite.rule, wanted);
    const auto is_it = [&](const Rewrite& other) {
      return other.roots == rewrite.roots && other.variant == rewrite.variant;
    };
    const size_t which = std::ranges::find_if(first, is_it) - first.begin();
    std::vector<Graph> made(graphs_.size());
    AG_LET(made[0], Child(graphs_[0], rewrite));
    bool everywhere = true;
    for (size_t i = 1; i < graphs_.size() && everywhere; ++i) {
      const std::vector<Rewrite> there = Alike(graphs_[i].graph, *rewrite.rule, wanted);
      everywhere = !there.empty();
      if (!everywhere) break;
      StatusOr<Graph> child = Child(graphs_[i], there[std::min(which, there.size() - 1)]);
      everywhere = child.ok();
      if (everywhere) made[i] = *std::move(child);
    }
    for (size_t i = 0; i < (everywhere ? graphs_.size() : 1); ++i) graphs_[i] = {made[i], true};
    if (everywhere && on_rewritten_) {
      on_rewritten_(made[std::min<size_t>(1, made.size() - 1)], rewrite.rule->name);
    }
    if (everywhere) {
      ++result_.applied;
    } else {
      LeaveOut(rewrite.rule->name);
    }
    return OkStatus();
  }

  void LeaveOut(const std::string& rule) {
    const auto it = std::ranges::find(result_.left_out, rule, &AppliedRewrite::rule);
    AppliedRewrite& left =
        it == result_.left_out.end() ? result_.left_out.emplace_back(AppliedRewrite{rule}) : *it;
    ++left.count;
  }

  const RuleSet& rules_;
  const OnRewritten& on_rewritten_;
  const RuleIndex clean_up_;
  const SizeBlind blind_;
  std::vector<Held> graphs_;  // The input's first.
  std::map<std::string, std::optional<RuleSet>> only_;
  RepeatedRewrites result_;
};

}  // namespace

StatusOr<RepeatedRewrites> RepeatRewrites(const Graph& input, std::span<const RewriteStep> steps,
                                          std::vector<Graph> others, const RuleSet& rules,
                                          const OnRewritten& on_rewritten) {
  return Repetition(input, std::move(others), rules, on_rewritten).Run(steps);
}

}  // namespace ag
