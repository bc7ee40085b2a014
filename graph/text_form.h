// The text form of graphs: what tests, `plan show` and the docs read and write (docs/text-form.md).
//
//   input x f32[1,3,8,8]
//   w = const f32[4,3,3,3] seed 7          // synthetic data, see SyntheticWeights
//   b = const f32[4] {0, 0.5, 1, -1}       // inline values
//   v = const f32[9,9] sha256:<64 digits>  // named bytes
//   y = conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1] group=1
//   p, q = split(y) axis=1 sizes=[2,2]
//   output "logits" = relu(p)
//   output q                               // an output called "q"
//
// One statement a line; // and # start comments. Operators by their text names; attributes that
// have a default may be left out. Calls may nest.
#pragma once

#include <string>
#include <string_view>

#include "graph/graph.h"
#include "graph/weights.h"

namespace ag {

// kInvalidArgument with "line L:C: what" for every mistake. Constants with data (inline values,
// seed) are put into `weights` when it is not null.
StatusOr<Graph> ParseGraph(std::string_view text, MemoryWeights* weights = nullptr);

// Parses back to an equal graph. Constants too large to be inline are written by digest.
std::string FormatGraph(const Graph& graph);

}  // namespace ag
