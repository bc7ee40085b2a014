#include "search/repeat_rewrites.h"

#include <algorithm>

#include "graph/hash.h"
#include "rules/match/rule_clean_up.h"
#include "search/one_rule.h"
#include "search/rewrite_walk.h"
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
      : rules_(rules), on_rewritten_(on_rewritten), blind_(All(input, others)), one_rule_(rules) {
    walks_.push_back(RewriteWalk(input, rules));
    for (Graph& other : others) {
      walks_.push_back(RewriteWalk::FromClean(std::move(other), rules));
    }
    result_.steps.resize(others.size());
  }

  StatusOr<RepeatedRewrites> Run(std::span<const RewriteStep> steps) {
    for (const RewriteStep& step : steps) {
      if (step.begins_round) AG_TRY(BeginRound());
      AG_TRY(Take(step), "{}", step.rewrite.rule->name);
    }
    for (size_t i = 1; i < walks_.size(); ++i) {
      AG_LET(const Graph clean, CleanUp(walks_[i].graph(), rules_));
      AG_LET(Graph ordered, blind_.Ordered(clean));
      result_.graphs.push_back(std::move(ordered));
    }
    return std::move(result_);
  }

 private:
  // One step in one graph.
  struct Taken {
    Rewrite rewrite;
    Graph after;
  };

  static std::vector<Graph> All(const Graph& input, const std::vector<Graph>& others) {
    std::vector<Graph> all = {input};
    all.insert(all.end(), others.begin(), others.end());
    return all;
  }

  Status BeginRound() {
    for (RewriteWalk& walk : walks_) AG_TRY(walk.BeginRound());
    begins_round_ = true;
    return OkStatus();
  }

  // Returns the rewrites of the rule that stand where `wanted` does: those at places with the same
  // exact names, if there are any.
  std::vector<Rewrite> Alike(const Graph& graph, const Rule& rule, const PlaceNames& wanted) {
    const std::vector<uint64_t> loose = blind_.LooseNames(graph), exact = blind_.Names(graph);
    std::vector<Rewrite> alike, same;
    for (Rewrite& rewrite : one_rule_.Find(graph, rule)) {
      const PlaceNames place = PlaceOf(rewrite, loose, exact);
      if (place.loose != wanted.loose) continue;
      (place.exact == wanted.exact ? same : alike).push_back(std::move(rewrite));
    }
    return same.empty() ? alike : same;
  }

  // Takes one step in the input's graph, and in all others if it has its place there.
  Status Take(const RewriteStep& step) {
    const Rewrite& rewrite = step.rewrite;
    const Graph& graph = walks_[0].graph();
    const PlaceNames wanted = PlaceOf(rewrite, blind_.LooseNames(graph), blind_.Names(graph));
    const std::vector<Rewrite> first = Alike(graph, *rewrite.rule, wanted);
    const auto is_it = [&](const Rewrite& other) {
      return other.roots == rewrite.roots && other.variant == rewrite.variant;
    };
    const size_t which = std::ranges::find_if(first, is_it) - first.begin();
    std::vector<Taken> taken(walks_.size());
    AG_LET(taken[0].after, walks_[0].After(rewrite));
    bool everywhere = true;
    for (size_t i = 1; i < walks_.size() && everywhere; ++i) {
      const std::vector<Rewrite> there = Alike(walks_[i].graph(), *rewrite.rule, wanted);
      everywhere = !there.empty();
      if (!everywhere) break;
      taken[i].rewrite = there[std::min(which, there.size() - 1)];
      StatusOr<Graph> child = walks_[i].After(taken[i].rewrite);
      everywhere = child.ok();
      if (everywhere) taken[i].after = *std::move(child);
    }
    if (everywhere) {
      GoTo(std::move(taken), step.gain_ns);
      if (on_rewritten_) {
        on_rewritten_(walks_[std::min<size_t>(1, walks_.size() - 1)].graph(), rewrite.rule->name);
      }
    } else {
      walks_[0].GoTo(std::move(taken[0].after));
      LeaveOut(rewrite.rule->name);
    }
    return OkStatus();
  }

  void GoTo(std::vector<Taken> taken, double gain_ns) {
    for (size_t i = 0; i < walks_.size(); ++i) {
      walks_[i].GoTo(std::move(taken[i].after));
      if (i == 0) continue;
      result_.steps[i - 1].push_back({std::move(taken[i].rewrite), begins_round_, gain_ns});
    }
    begins_round_ = false;
    ++result_.applied;
  }

  void LeaveOut(const std::string& rule) {
    const auto it = std::ranges::find(result_.left_out, rule, &AppliedRewrite::rule);
    AppliedRewrite& left =
        it == result_.left_out.end() ? result_.left_out.emplace_back(AppliedRewrite{rule}) : *it;
    ++left.count;
  }

  const RuleSet& rules_;
  const OnRewritten& on_rewritten_;
  const SizeBlind blind_;
  std::vector<RewriteWalk> walks_;  // The input's first.
  bool begins_round_ = false;       // Since the last step that was taken everywhere.
  OneRule one_rule_;
  RepeatedRewrites result_;
};

}  // namespace

StatusOr<RepeatedRewrites> RepeatRewrites(const Graph& input, std::span<const RewriteStep> steps,
                                          std::vector<Graph> others, const RuleSet& rules,
                                          const OnRewritten& on_rewritten) {
  return Repetition(input, std::move(others), rules, on_rewritten).Run(steps);
}

}  // namespace ag
