// The history of each graph of the search: its parent, and the rewrite that made it. It holds no
// graphs, so it may grow with the search. The path of the winner becomes the report's list of
// rewrites, and is repeated at other sizes. One thread at a time.
#pragma once

#include <span>
#include <vector>

#include "search/search.h"

namespace ag {

// Returns the rewrites of `steps`, one entry per rule, in the order of first application.
std::vector<AppliedRewrite> AppliedOf(std::span<const RewriteStep> steps);

class RewriteTrail {
 public:
  static constexpr int kInput = 0;  // The step of the input graph.

  RewriteTrail() : steps_(1) {}

  // Adds the graph that `made_by` made from `parent` and returns its step. The rule must outlive
  // the trail.
  int Add(int parent, RewriteStep made_by);

  // Returns the steps from the input's first child to `step`.
  std::vector<int> StepsTo(int step) const;
  // Returns the rewrite that made a graph. REQUIRES: `step` is not kInput.
  const RewriteStep& MadeBy(int step) const { return steps_[static_cast<size_t>(step)].made_by; }
  // Returns the rewrites from the input to `step`.
  std::vector<RewriteStep> Steps(int step) const;
  // Returns AppliedOf these.
  std::vector<AppliedRewrite> Path(int step) const { return AppliedOf(Steps(step)); }

 private:
  struct Step {
    int parent = -1;
    RewriteStep made_by;
  };
  std::vector<Step> steps_;
};

}  // namespace ag
