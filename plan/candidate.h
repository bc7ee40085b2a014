// A graph and a plan to run it by: what the search proposes, workers time and compare, and the
// message Candidate carries. Plain data.
#pragma once

#include "graph/graph.h"
#include "plan/plan.h"

namespace ag {

struct Candidate {
  Graph graph;
  Plan plan;
};

}  // namespace ag
