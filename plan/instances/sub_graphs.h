// Sub-graphs cut by the hardware: GraphTurbo's Algorithm 2 (Zhao et al., OSDI 2023, section 4.1).
// Pure functions.
#pragma once

#include <vector>

#include "plan/instances/split.h"

namespace ag {

struct SubGraph {
  std::vector<int> layers;  // Ascending.
  SplitInfo split;
};

// Returns the sub-graphs, in topological order. Each layer begins as one; then straight, diamond
// and branch merges are made in topological order, until no pass merges anything:
//   straight  SG1 -> SG2, no other reader of SG1 and nothing else read by SG2
//   diamond   SG1 -> branches -> SG4: each branch reads SG1 alone and is read by SG4 alone; SG4 may
//             also read SG1 itself, as a residual does
//   branch    SG1 -> SG2 where there are other readers or producers
// Straight and branch merges keep factor(SG2) >= factor(SG1) and factor(merged) <= factor(SG2); a
// diamond keeps factor(merged) <= the largest factor of the branches and SG4. A merged sub-graph
// makes no cycle, its instance fits `buffer_bytes`, and when it has several instances, all its
// operators are cut.
std::vector<SubGraph> FormSubGraphs(const LayeredGraph& layered, int64_t buffer_bytes);

}  // namespace ag
