// The history of each graph of the search: its parent, and the rule that made it. It holds no
// graphs, so it may grow with the search. The path of the winner becomes the report's list of
// rewrites. One thread at a time.
#pragma once

#include <vector>

#include "search/search.h"

namespace ag {

class RewriteTrail {
 public:
  static constexpr int kInput = 0;  // The step of the input graph.

  RewriteTrail() : steps_(1) {}

  // Adds the graph that `rule` made from `parent` and returns its step. gain_ns: the parent's
  // estimate minus its own. `rule` must outlive the trail.
  int Add(int parent, const Rule* rule, double gain_ns);

  // Returns the rewrites from the input to `step`, one entry per rule, in the order of first
  // application.
  std::vector<AppliedRewrite> Path(int step) const;

 private:
  struct Step {
    int parent = -1;
    const Rule* rule = nullptr;
    double gain_ns = 0;
  };
  std::vector<Step> steps_;
};

}  // namespace ag
