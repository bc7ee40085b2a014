#include "server/pipeline/rewrite_gains.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "graph/structure_hash.h"
#include "plan/fusion/learned_times.h"
#include "plan/schedule/planner.h"
#include "search/rewrite_trail.h"
#include "server/pipeline/guilty_rewrite.h"

namespace ag {
namespace {

using Steps = std::vector<RewriteStep>;

const std::string& RuleOf(const RewriteStep& step) { return step.rewrite.rule->name; }

StatusOr<ReplayedTrail> ReplayWithout(const GainRequest& request, const Steps& steps,
                                      std::vector<bool> left_out) {
  return ReplayTrail({.input = request.input,
                      .steps = steps,
                      .rules = &request.rules,
                      .onto = request.input,
                      .allowed = &request.rules,
                      .left_out = std::move(left_out)});
}

// The one layout besides plain in which the plan's groups write; nothing: none, or several.
std::optional<Layout> LayoutOf(const Plan& plan) {
  std::set<Layout> layouts;
  for (const Plan* const own : PlansIn(plan)) {
    for (const Group& group : own->groups) {
      for (const Port& port : group.outputs) {
        if (port.layout != Layout::kPlain) layouts.insert(port.layout);
      }
    }
  }
  return layouts.size() == 1 ? std::optional<Layout>(*layouts.begin()) : std::nullopt;
}

// Plans graphs as the found plan is: its streams and layout, and its kernels for equal groups.
class AlikePlans {
 public:
  AlikePlans(const GainRequest& request, Measurer& measurer, const FoundPlan& like)
      : request_(request),
        times_(request.spec, measurer.ForGroups(), {.stop = request.stop}),
        grouping_{.layout = LayoutOf(like.plan), .mixed_layouts = true},
        streams_(std::max(1, static_cast<int>(like.plan.streams.size()))) {
    std::vector<std::pair<GroupProblem, std::string>> kernels;
    // Groups of segments have other sizes than those of the plans made here.
    for (const Group& group : like.plan.groups) {
      if (group.pattern == kViewPattern) continue;
      kernels.emplace_back(ExtractGroup(like.graph, group, request.policy), group.kernel);
      times_.Want(kernels.back().first);
    }
    times_.MeasureWanted();
    for (const auto& [problem, kernel] : kernels) times_.Prefer(problem, kernel);
  }

  StatusOr<Candidate> Make(Graph graph) {
    AG_LET(TimedPlan made,
           MakeMeasuredPlan({graph, request_.spec, request_.policy, grouping_, streams_}, times_));
    AG_TRY(made.failure);
    if (!made.unmeasured.empty()) {
      return Err(StatusCode::kDeadlineExceeded, "{} groups were not measured",
                 made.unmeasured.size());
    }
    made.plan.environment = request_.environment;
    return Candidate{std::move(graph), std::move(made.plan)};
  }

 private:
  const GainRequest& request_;
  LearnedTimes times_;
  const GroupingOptions grouping_;
  const int streams_;
};

// Rules of which the replay lacks rewrites, without `rule`.
std::vector<std::string> AlsoLeftOut(const Steps& steps, const ReplayedTrail& replay,
                                     const std::string& rule) {
  std::vector<std::string> names;
  for (size_t i = 0; i < steps.size(); ++i) {
    const std::string& name = RuleOf(steps[i]);
    const bool is_known = std::ranges::find(names, name) != names.end();
    if (!replay.kept[i] && name != rule && !is_known) names.push_back(name);
  }
  return names;
}

// The rewrites of the plan by size of their estimated gains, the largest first.
std::vector<AppliedRewrite*> Largest(FoundPlan* plan) {
  std::vector<AppliedRewrite*> largest;
  for (AppliedRewrite& rewrite : plan->rewrites) largest.push_back(&rewrite);
  std::ranges::stable_sort(largest, std::greater<>(), [](const AppliedRewrite* rewrite) {
    return std::abs(rewrite->gain_ns);
  });
  if (largest.size() > kGainRulesMax) largest.resize(kGainRulesMax);
  return largest;
}

}  // namespace

void DropUndoneRewrites(const GainRequest& request, FoundPlan* plan) {
  if (plan->steps.size() > kUndoneStepsMax) return;
  const StructureHash wanted = HashOfStructure(plan->graph);
  for (size_t i = 0; i < plan->steps.size() && !request.stop();) {
    std::vector<bool> left_out(plan->steps.size(), false);
    left_out[i] = true;
    StatusOr<ReplayedTrail> replay = ReplayWithout(request, plan->steps, std::move(left_out));
    if (replay.ok() && HashOfStructure(replay->graph) == wanted) {
      plan->steps = std::move(replay->steps);  // Without the one, and what has no place then.
    } else {
      ++i;
    }
  }
  plan->rewrites = AppliedOf(plan->steps);
}

Status MeasureGains(const GainRequest& request, Measurer& measurer, FoundPlan* plan) {
  if (plan->rewrites.empty() || request.stop()) return OkStatus();
  AlikePlans plans(request, measurer, *plan);
  std::vector<AppliedRewrite*> rewrites;  // Of candidates[1] and so on.
  std::vector<Candidate> candidates = {*plan};
  for (AppliedRewrite* rewrite : Largest(plan)) {
    if (request.stop()) break;
    std::vector<bool> left_out;
    for (const RewriteStep& step : plan->steps) left_out.push_back(RuleOf(step) == rewrite->rule);
    StatusOr<ReplayedTrail> replay = ReplayWithout(request, plan->steps, std::move(left_out));
    if (!replay.ok()) continue;
    StatusOr<Candidate> rest = plans.Make(std::move(replay->graph));
    if (!rest.ok()) continue;
    rewrite->also_left_out = AlsoLeftOut(plan->steps, *replay, rewrite->rule);
    rewrites.push_back(rewrite);
    candidates.push_back(*std::move(rest));
  }
  if (rewrites.empty()) return OkStatus();
  AG_LET(const std::vector<PlanTiming> timings,
         measurer.MeasurePlans(candidates, Measurer::Effort::kRanking));
  for (size_t i = 0; i < rewrites.size(); ++i) {
    const PlanTiming& timing = timings[i + 1];
    if (!timing.status.ok() || timing.speedup_low <= 0) continue;
    rewrites[i]->gain = {1 / timing.speedup, 1 / timing.speedup_high, 1 / timing.speedup_low};
  }
  return OkStatus();
}

}  // namespace ag
