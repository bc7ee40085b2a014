// How each graph of the search came to be: its parent and the rule that made it. Holds no graphs,
// so it may grow with the search; a winner's path becomes the report's list of rewrites.
#pragma once

#include <vector>

#include "search/search.h"

namespace ag {

class RewriteTrail {
 public:
  static constexpr int kInput = 0;  // The input graph's step.

  RewriteTrail() : steps_(1) {}

  // Adds a graph made from `parent` by `rule`; gain_ns is the parent's estimate less its own.
  // Returns its step. `rule` outlives the trail.
  int Add(int parent, const Rule* rule, double gain_ns);

  // The rewrites from the input to `step`, one entry a rule, in the order of first application.
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
