// The split of a sub-graph: SplitInfo, GraphTurbo's Algorithm 1 (Zhao et al., OSDI 2023, section
// 4.1). A cut of the last result along one of its axes is spread over the operators of the
// sub-graph, and the smallest factor is taken that makes an instance fit the buffer. Pure
// functions.
#pragma once

#include <map>
#include <vector>

#include "plan/instances/layers.h"

namespace ag {

struct SplitInfo {
  int64_t factor = 1;          // Instances; 1: whole.
  int axis = 0;                // Of the last operator's result.
  int operators_cut = 0;       // n_d of Equation 1.
  bool fits = false;           // An instance fits the buffer.
  std::map<NodeId, int> axes;  // The axis along which each operator's results are cut.
};

// Returns the factors that are tried for an axis, ascending: 1, 2, 4, 8, 9, 10, ... extent, at
// least 1 and extent.
std::vector<int64_t> SplitFactors(int64_t extent);

// Returns the split with most operators cut, of these the smallest factor, of these the outermost
// axis (Equation 1). An axis is kept when a factor divides every tensor that is cut and makes
// ceil(peak / factor) fit `buffer_bytes`; without any the factor is 1. `layers` is ascending.
SplitInfo BestSplit(const LayeredGraph& layered, const std::vector<int>& layers,
                    int64_t buffer_bytes);

}  // namespace ag
