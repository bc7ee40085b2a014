// The search for the rewrite that made a candidate compute something else than the model: the
// graphs along the candidate's trail are compared with the model, and the first wrong one is found
// by bisection. Pure functions, but for the comparisons.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plan/measurement.h"
#include "search/search.h"

namespace ag {

// The graphs on a candidate's trail: the model, its clean-up (step zero), then a graph for each
// rewrite.
struct TrailRequest {
  Graph model;                     // What the graphs are compared with.
  Graph input;                     // The model cleaned up by `rules`.
  std::vector<RewriteStep> steps;  // Valid for `input`; their bindings belong to `rules`.
  const RuleSet* rules = nullptr;
  // Returns the output of a graph that differs most from the model's, if any differs too much.
  std::function<StatusOr<std::optional<OutputError>>(const Graph&)> differs;
  std::function<bool()> stop;  // May be null. Asked before each comparison.
};

struct GuiltyRewrite {
  enum class Outcome : uint8_t {
    kFound,
    kNotOnTrail,   // All of the trail computes what the model does: no rewrite is at fault.
    kModelItself,  // The model differs from itself: the device is at fault.
    kStopped,      // `stop` came first.
  };
  Outcome outcome = Outcome::kStopped;
  std::string rule;                // Empty: a pass of the clean-up, which no rule names.
  bool is_clean_up = false;        // In the clean-up, of the model or behind a rewrite.
  int step = 0;                    // The number of rewrites up to it; 0: the clean-up of the model.
  Graph before, after;             // The last right graph and the first wrong one.
  std::optional<Rewrite> rewrite;  // Of `before`, unless the clean-up is at fault.
  OutputError error;               // Of `after`.
  int comparisons = 0;
};

// Finds the first rewrite behind which the graph differs: about log2 of their number comparisons,
// and a few that tell a rewrite from the clean-up that follows it. It is as for any bisection: of
// several wrong rewrites it finds one. Returns the errors of `differs` and of rules.
StatusOr<GuiltyRewrite> FindGuiltyRewrite(const TrailRequest& request);

// A trail that goes on without some of its rewrites.
struct ReplayedTrail {
  Graph graph;
  // Valid for the graph that it was replayed on. Gains are those of the old steps.
  std::vector<RewriteStep> steps;
  std::vector<bool> kept;  // By step of the request: it is among `steps`.
};

// Repeats on `onto` the steps that were made on `input` by `rules`, as far as they are not left
// out, `allowed` has their rules, and they still find their places: a place is the one whose nodes
// correspond. `onto` is cleaned up by `allowed`, a subset of `rules`, to which the bindings of the
// result belong.
struct ReplayRequest {
  Graph input;
  std::vector<RewriteStep> steps;
  const RuleSet* rules = nullptr;
  Graph onto;
  const RuleSet* allowed = nullptr;
  std::vector<bool> left_out = {};  // By step: those to go without; empty: none.
};
StatusOr<ReplayedTrail> ReplayTrail(const ReplayRequest& request);

}  // namespace ag
