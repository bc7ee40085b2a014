#include "server/pipeline/guilty_rewrite.h"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "graph/onnx/export/correspondence.h"
#include "rules/match/rule_clean_up.h"
#include "search/one_rule.h"
#include "search/rewrite_walk.h"

namespace ag {
namespace {

class Bisection {
 public:
  explicit Bisection(const TrailRequest& request) : request_(request), rules_(*request.rules) {}

  StatusOr<GuiltyRewrite> Run() {
    AG_TRY(Find());
    if (stopped_) found_.outcome = GuiltyRewrite::Outcome::kStopped;
    return std::move(found_);
  }

 private:
  using Outcome = GuiltyRewrite::Outcome;

  // Returns whether the graph differs from the model, and remembers its error as the guilty one's.
  // After a stop nothing counts any more.
  StatusOr<bool> Differs(const Graph& graph) {
    stopped_ |= request_.stop && request_.stop();
    if (stopped_) return false;
    ++found_.comparisons;
    AG_LET(const std::optional<OutputError> error, request_.differs(graph));
    if (error) found_.error = *error;
    return error.has_value();
  }

  Status Find() {
    RewriteWalk whole(request_.input, rules_);
    AG_TRY(whole.Take(request_.steps));
    AG_LET(const bool is_wrong, Differs(whole.graph()));
    if (stopped_) return OkStatus();
    if (!is_wrong) {
      found_.outcome = Outcome::kNotOnTrail;
      return OkStatus();
    }
    found_.outcome = Outcome::kFound;
    bool is_clean_up = request_.steps.empty();
    if (!is_clean_up) {
      AG_LET(is_clean_up, Differs(request_.input));
    }
    if (stopped_) return OkStatus();
    return is_clean_up ? FindInModel() : FindStep();
  }

  // The model's clean-up is at fault, unless the model differs from itself.
  Status FindInModel() {
    bool is_wrong = request_.input.digest() == request_.model.digest();
    if (!is_wrong) {
      AG_LET(is_wrong, Differs(request_.model));
    }
    if (is_wrong) found_.outcome = Outcome::kModelItself;
    return is_wrong || stopped_ ? OkStatus() : FindInCleanUp(request_.model);
  }

  // Keeps `low`, the walk behind a right number of steps, below `high`, a wrong number.
  Status FindStep() {
    const std::span<const RewriteStep> steps(request_.steps);
    RewriteWalk low(request_.input, rules_);
    size_t right = 0, wrong = steps.size();
    while (wrong - right > 1) {
      const size_t middle = right + (wrong - right) / 2;
      RewriteWalk walk = low;
      AG_TRY(walk.Take(steps.subspan(right, middle - right)));
      AG_LET(const bool is_wrong, Differs(walk.graph()));
      if (stopped_) return OkStatus();
      if (is_wrong) {
        wrong = middle;
      } else {
        right = middle;
        low = std::move(walk);
      }
    }
    found_.step = static_cast<int>(wrong);
    return TellFromCleanUp(std::move(low), steps[right]);
  }

  // The graph behind `step` is wrong and the one before it is right: the rewrite is at fault, or
  // the clean-up that follows it.
  Status TellFromCleanUp(RewriteWalk before, const RewriteStep& step) {
    if (step.begins_round) {
      const Graph unclean = before.graph();
      AG_TRY(before.BeginRound());
      if (before.graph().digest() != unclean.digest()) {
        AG_LET(const bool is_wrong, Differs(before.graph()));
        if (stopped_) return OkStatus();
        if (is_wrong) return FindInCleanUp(unclean);
      }
    }
    AG_LET(const Graph raw, Apply(before.graph(), step.rewrite));
    AG_LET(const Graph clean, before.After(step.rewrite));
    if (raw.digest() != clean.digest()) {
      AG_LET(const bool is_wrong, Differs(raw));
      if (stopped_) return OkStatus();
      if (!is_wrong) return FindInCleanUp(raw);
    }
    found_.rule = step.rewrite.rule->name;
    found_.before = before.graph();
    found_.after = raw;
    found_.rewrite = step.rewrite;
    return OkStatus();
  }

  // `raw` is right and wrong when it is cleaned up: bisects over the rules that the clean-up
  // applies. Without all of them its passes are left.
  Status FindInCleanUp(const Graph& raw) {
    found_.is_clean_up = true;
    std::vector<CleanUpStep> applied;
    AG_TRY(CleanUp(raw, rules_, &applied));
    std::vector<std::string> names;
    for (const CleanUpStep& step : applied) names.push_back(step.rule);
    const auto cleaned_by = [&](size_t count) {
      const std::vector<std::string> rest(names.begin() + static_cast<ptrdiff_t>(count),
                                          names.end());
      return CleanUp(raw, rules_.Without(rest, /*strict=*/false));
    };
    size_t right = 0, wrong = names.size();
    bool passes_are_right = false;
    found_.before = raw;
    AG_LET(found_.after, cleaned_by(wrong));
    while (wrong > 0 && !(passes_are_right && wrong - right == 1)) {
      const size_t middle = passes_are_right ? right + (wrong - right) / 2 : 0;
      AG_LET(Graph graph, cleaned_by(middle));
      AG_LET(const bool is_wrong, Differs(graph));
      if (stopped_) return OkStatus();
      (is_wrong ? found_.after : found_.before) = std::move(graph);
      (is_wrong ? wrong : right) = middle;
      passes_are_right |= !is_wrong;
    }
    if (wrong > 0) found_.rule = names[wrong - 1];
    return OkStatus();
  }

  const TrailRequest& request_;
  const RuleSet& rules_;
  GuiltyRewrite found_;
  bool stopped_ = false;
};

// Follows the old trail and the new one, and finds places of the old one in the new one.
class TrailReplay {
 public:
  explicit TrailReplay(const ReplayRequest& request)
      : request_(request),
        allowed_(*request.allowed),
        old_(request.input, *request.rules),
        new_(request.onto, allowed_),
        one_rule_(allowed_) {}

  StatusOr<ReplayedTrail> Run() {
    bool begins_round = false;
    for (size_t i = 0; i < request_.steps.size(); ++i) {
      const RewriteStep& step = request_.steps[i];
      const bool is_wanted = request_.left_out.empty() || !request_.left_out[i];
      if (step.begins_round) {
        begins_round = true;
        AG_TRY(old_.BeginRound());
        AG_TRY(new_.BeginRound());
      }
      std::optional<Rewrite> there;
      const Rule* const rule = allowed_.Find(step.rewrite.rule->name);
      if (is_wanted && rule != nullptr) there = Find(step.rewrite, *rule);
      StatusOr<Graph> after = old_.After(step.rewrite);
      AG_TRY(after, "{}", step.rewrite.rule->name);
      old_.GoTo(*std::move(after));
      result_.kept.push_back(there && Take(*there));
      if (!result_.kept.back()) continue;
      result_.steps.push_back({*std::move(there), begins_round, step.gain_ns});
      begins_round = false;
    }
    AG_LET(result_.graph, CleanUp(new_.graph(), allowed_));
    return std::move(result_);
  }

 private:
  bool Take(const Rewrite& rewrite) {
    StatusOr<Graph> after = new_.After(rewrite);
    if (!after.ok()) return false;
    new_.GoTo(*std::move(after));
    return true;
  }

  // Returns the rewrite of `rule` in the new graph whose roots correspond to the old one's: that
  // with the most other nodes that do, and of these the one of the same variant.
  std::optional<Rewrite> Find(const Rewrite& wanted, const Rule& rule) {
    const std::vector<NodeId> old_of = Correspondence(old_.graph(), new_.graph());
    std::vector<Edge> roots = wanted.roots;
    std::ranges::sort(roots);
    const std::set<NodeId> nodes(wanted.bindings->nodes.begin(), wanted.bindings->nodes.end());
    std::optional<Rewrite> best;
    std::pair<int64_t, int> best_score;
    for (Rewrite& rewrite : one_rule_.Find(new_.graph(), rule)) {
      std::vector<Edge> there;
      for (const Edge& root : rewrite.roots) there.push_back({old_of[root.node], root.output});
      std::ranges::sort(there);
      if (there != roots) continue;
      const auto is_same = [&](NodeId id) { return nodes.contains(old_of[id]); };
      const std::pair<int64_t, int> score = {
          std::ranges::count_if(rewrite.bindings->nodes, is_same),
          -std::abs(rewrite.variant - wanted.variant)};
      if (best && score <= best_score) continue;
      best_score = score;
      best = std::move(rewrite);
    }
    return best;
  }

  const ReplayRequest& request_;
  const RuleSet& allowed_;
  RewriteWalk old_, new_;
  OneRule one_rule_;
  ReplayedTrail result_;
};

}  // namespace

StatusOr<GuiltyRewrite> FindGuiltyRewrite(const TrailRequest& request) {
  return Bisection(request).Run();
}

StatusOr<ReplayedTrail> ReplayTrail(const ReplayRequest& request) {
  return TrailReplay(request).Run();
}

}  // namespace ag
