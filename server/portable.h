// Which of a job's rewrites also help in another runtime: the winner's rewrites are made again on
// the cleaned-up input, one rule at a time, and each stays only when it is FASTER there.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "rules/rewrite.h"
#include "server/job.h"

namespace ag {

// A rule and at how many places it is to be applied.
struct TrailStep {
  std::string rule;
  int count = 0;
};

// The graph after up to step.count applications of the rule, and how many there were: 0 when it
// has no place here. Of several places the first that joins the most roots is taken; none that
// leads back to a graph it came from. Errors are bugs of rules.
struct Applied {
  Graph graph;
  int count = 0;
};
StatusOr<Applied> ApplyRule(const Graph& graph, const TrailStep& step, const RuleSet& rules);

// Times `candidate` against the best graph so far; null: against the model as it came.
using TryGraph = std::function<StatusOr<Ratio>(const Graph* best, const Graph& candidate)>;

struct PortableResult {
  std::optional<Graph> best;  // Nothing: the model as it came.
  std::vector<PortableStep> steps;
  bool stopped = false;  // `stop` ended it before every step was tried.
};

inline constexpr const char* kCleanUpStep = "clean-up";
inline constexpr const char* kWinnerStep = "winner";

// Tries the clean-up by itself, each rule of the trail in its order on what was kept (again, as
// long as rules find further places), and, when some of it was dropped, the winner as it is: a
// rewrite may pay only together with the next, or at just those places. A rule whose places went
// with a dropped one is dropped. `stop` is asked before each trial; an error of `try_graph` with
// kCancelled stops as well, any other is returned. `on_step` (may be null) hears of each step.
struct PortableRequest {
  Graph model;  // As it came: a clean-up that changes nothing is not tried.
  Graph input;  // Cleaned up.
  std::vector<TrailStep> trail;
  std::optional<Graph> winner;  // What the trail led to.
  const RuleSet* rules = nullptr;
  TryGraph try_graph;
  std::function<bool()> stop;
  std::function<void(const PortableStep&)> on_step;
};
StatusOr<PortableResult> KeepWhatHelps(const PortableRequest& request);

}  // namespace ag
