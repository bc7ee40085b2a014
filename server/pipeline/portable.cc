#include "server/pipeline/portable.h"

#include <algorithm>
#include <set>
#include <utility>

#include "rules/match/rule_clean_up.h"
#include "wire/measurement_wire.h"

namespace ag {
namespace {

// Rounds over the trail: after a later rule was applied, an earlier one may find further places.
constexpr int kRoundsMax = 4;

RuleSet Only(const RuleSet& rules, const std::string& name) {
  std::vector<std::string> others;
  for (const Rule& rule : rules.rules()) {
    if (rule.name != name) others.push_back(rule.name);
  }
  return rules.Without(others, /*strict=*/false);
}

v1::PortableStep StepOf(const std::string& rule, int wanted, int applied) {
  v1::PortableStep step;
  step.set_rule(rule);
  step.set_wanted(wanted);
  step.set_applied(applied);
  return step;
}

class Replay {
 public:
  explicit Replay(const PortableRequest& request)
      : request_(request),
        base_(request.input),
        left_(request.trail),
        tried_{request.model.digest(), request.input.digest()} {}

  StatusOr<PortableResult> Run() {
    AG_TRY(TryCleanUp());
    for (int round = 0; round < kRoundsMax && !result_.stopped; ++round) {
      bool kept = false;
      for (TrailStep& step : left_) {
        if (step.count > 0 && !result_.stopped) AG_TRY(TryRule(step, &kept));
      }
      if (!kept) break;
    }
    for (const TrailStep& step : left_) {
      if (step.count > 0 && !result_.stopped && !WasTried(step.rule)) SayGone(step);
    }
    if (!result_.stopped) AG_TRY(TryWinner());
    return std::move(result_);
  }

 private:
  // Times the candidate against the best graph and keeps it when it is FASTER.
  StatusOr<bool> Try(v1::PortableStep step, const Graph& candidate) {
    if (request_.stop && request_.stop()) {
      result_.stopped = true;
      return false;
    }
    const Graph* best = result_.best.has_value() ? &*result_.best : nullptr;
    const StatusOr<Ratio> ratio = request_.try_graph(best, candidate, step.rule());
    const StatusCode code = ratio.status().code();
    if (code == StatusCode::kCancelled || code == StatusCode::kDeadlineExceeded) {
      result_.stopped = true;
      return false;
    }
    AG_TRY(ratio);
    tried_.insert(candidate.digest());
    ToProto(*ratio, step.mutable_ratio());
    step.set_kept(IsFaster(*ratio));
    step.set_reason(
        v1::Result::Verdict_Name(step.kept() ? v1::Result::FASTER : v1::Result::NO_GAIN_FOUND));
    if (step.kept()) result_.best = candidate;
    Say(std::move(step));
    return result_.steps.back().kept();
  }

  void Say(v1::PortableStep step) {
    if (request_.on_step) request_.on_step(step);
    result_.steps.push_back(std::move(step));
  }

  void SayGone(const TrailStep& step) {
    const bool known = request_.rules->Find(step.rule) != nullptr;
    v1::PortableStep gone = StepOf(step.rule, step.count, 0);
    gone.set_reason(known ? "its places are gone" : "this program does not have the rule");
    Say(std::move(gone));
  }

  bool WasTried(const std::string& rule) const {
    return std::ranges::any_of(result_.steps, [&](auto& step) { return step.rule() == rule; });
  }

  Status TryCleanUp() {
    if (request_.input.digest() == request_.model.digest()) return OkStatus();
    return Try(StepOf(kCleanUpStep, 1, 1), request_.input).status();
  }

  Status TryRule(TrailStep& step, bool* kept) {
    AG_LET(const Applied applied, ApplyRule(base_, step, *request_.rules));
    if (applied.count == 0) return OkStatus();  // A later rule may make places for it.
    AG_LET(const bool helps, Try(StepOf(step.rule, step.count, applied.count), applied.graph));
    if (result_.stopped) return OkStatus();
    step.count = helps ? step.count - applied.count : 0;
    if (!helps) return OkStatus();
    base_ = applied.graph;
    *kept = true;
    return OkStatus();
  }

  // Tries the winner itself, unless all of its rewrites were kept or one rule alone makes it.
  Status TryWinner() {
    if (!request_.winner.has_value() || tried_.contains(request_.winner->digest())) {
      return OkStatus();
    }
    int wanted = 0, kept = 0, timed = 0;
    for (const TrailStep& step : request_.trail) wanted += step.count;
    for (const v1::PortableStep& step : result_.steps) {
      if (step.rule() == kCleanUpStep) continue;
      kept += step.kept() ? step.applied() : 0;
      timed += step.applied();
    }
    const bool one_rule = request_.trail.size() == 1 && timed == wanted;
    if (kept == wanted || one_rule) return OkStatus();
    return Try(StepOf(kWinnerStep, wanted, wanted), *request_.winner).status();
  }

  const PortableRequest& request_;
  Graph base_;  // The cleaned-up input with the rewrites that were kept.
  std::vector<TrailStep> left_;
  std::set<Digest> tried_;  // Graphs that were timed, the model and the input.
  PortableResult result_;
};

}  // namespace

StatusOr<Applied> ApplyRule(const Graph& graph, const TrailStep& step, const RuleSet& rules) {
  Applied applied{.graph = graph};
  const RuleSet rule = Only(rules, step.rule);
  std::set<Digest> seen = {graph.digest()};
  while (applied.count < step.count) {
    std::vector<Rewrite> places = FindRewrites(applied.graph, rule);
    std::ranges::stable_sort(places, std::greater<>(),
                             [](const Rewrite& place) { return place.roots.size(); });
    bool moved = false;
    for (const Rewrite& place : places) {
      StatusOr<Graph> raw = Apply(applied.graph, place);
      if (raw.status().code() == StatusCode::kFailedPrecondition) continue;
      AG_TRY(raw);
      AG_LET(Graph clean, CleanUp(*raw, rules));
      if (!seen.insert(clean.digest()).second) continue;
      applied.graph = std::move(clean);
      ++applied.count;
      moved = true;
      break;
    }
    if (!moved) break;
  }
  return applied;
}

StatusOr<PortableResult> KeepWhatHelps(const PortableRequest& request) {
  return Replay(request).Run();
}

}  // namespace ag
