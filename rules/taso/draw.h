// A TASO rule at random shapes: both sides as graphs with the same inputs and outputs.
#pragma once

#include <optional>
#include <string>

#include "graph/graph.h"
#include "rules/taso/format.h"

namespace ag {

struct TasoInstance {
  Graph source;
  // None where the target is ill-typed: TASO's loader and applier do not apply the rule there.
  std::optional<Graph> target;
  std::string target_error;  // Why not; "" when there is one.
  std::string shapes;        // "i1[1,2,3,3] w4[2,2,3,3]", "y[1,2,1,1]=1" for a constant of ones.
  int64_t elements = 0;      // Of all variables together.
  double epsilon = 0;        // Of batch-norms that do not say; 0: there are none.
};

// One draw, fully determined by `seed`: axes of 1 to 4 (images up to 5), axes of size 1, operands
// that broadcast, groups, depthwise. Variables that only ever are weights of convolutions and
// batch-norms are constants, as in a model; one that multiplies may be ones. kInvalidArgument: the
// source is ill-typed with these shapes (the usual case for some rules: draw again).
StatusOr<TasoInstance> DrawTasoInstance(const TasoRule& rule, uint64_t seed);

}  // namespace ag
