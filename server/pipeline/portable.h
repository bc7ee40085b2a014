// The choice of the rewrites that also help in another runtime: the winner's rewrites are applied
// again to the cleaned-up input, one rule at a time, and each rule's rewrites are kept only when
// they are FASTER there. One thread at a time for one request.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "rules/match/rewrite.h"
#include "server/jobs/job.h"

namespace ag {

// A rule and the number of places where it is to be applied.
struct TrailStep {
  std::string rule;
  int count = 0;
};

// The graph after at most step.count applications of the rule, and their number (0: no place
// matched). Takes the first of the places with the most roots, and skips a place that leads back to
// an earlier graph. An error is a bug in a rule.
struct Applied {
  Graph graph;
  int count = 0;
};
StatusOr<Applied> ApplyRule(const Graph& graph, const TrailStep& step, const RuleSet& rules);

// Times `candidate` against the best graph so far; null means the model as it came. `step` names
// what made it of the best graph, or of the input where that is null: a rule, kCleanUpStep or
// kWinnerStep.
using TryGraph = std::function<StatusOr<Ratio>(const Graph* best, const Graph& candidate,
                                               const std::string& step)>;

struct PortableResult {
  std::optional<Graph> best;  // Nothing: the model as it came.
  std::vector<v1::PortableStep> steps;
  bool stopped = false;  // `stop` was true before every step was tried.
};

inline constexpr const char* kCleanUpStep = "clean-up";
inline constexpr const char* kWinnerStep = "winner";

// Tries the clean-up by itself, then each rule of the trail in its order on the graph kept so far,
// and repeats the trail while rules find further places. When some of it was dropped, tries the
// winner itself, since a rewrite may pay only together with the next one or only at certain places.
// Drops a rule whose places went away with a dropped rule. Asks `stop` before each trial;
// kCancelled and kDeadlineExceeded from `try_graph` stop as well, any other error is returned.
// Calls `on_step` (may be null) for each step.
struct PortableRequest {
  Graph model;  // The model as it came: a clean-up that changes nothing is not tried.
  Graph input;  // Cleaned up.
  std::vector<TrailStep> trail;
  std::optional<Graph> winner;  // The graph that the trail led to.
  const RuleSet* rules = nullptr;
  TryGraph try_graph;
  std::function<bool()> stop;
  std::function<void(const v1::PortableStep&)> on_step;
};
StatusOr<PortableResult> KeepWhatHelps(const PortableRequest& request);

}  // namespace ag
