// A TASO rule at random shapes: both sides as graphs with the same inputs and outputs. Pure
// functions.
#pragma once

#include <optional>
#include <string>

#include "graph/graph.h"
#include "lab/taso/format.h"

namespace ag {

struct TasoInstance {
  Graph source;
  // Nothing when the target is ill-typed: TASO's loader and applier do not apply the rule then.
  std::optional<Graph> target;
  std::string target_error;  // Why there is no target; "": there is one.
  std::string shapes;        // "i1[1,2,3,3] w4[2,2,3,3]", "y[1,2,1,1]=1" for a constant of ones.
  int64_t elements = 0;      // Elements of all variables together.
  double epsilon = 0;        // For batch-norms without one; 0: there are none.
};

// Returns one instance, determined by `seed`: axes of 1 to 4 (images up to 5), axes of size 1,
// operands that broadcast, groups, depthwise. Variables that are only weights of convolutions and
// batch-norms are constants, as in a model; a factor may be ones. kInvalidArgument: the source is
// ill-typed with these shapes (common for some rules: sample again).
StatusOr<TasoInstance> SampleTasoInstance(const TasoRule& rule, uint64_t seed);

}  // namespace ag
