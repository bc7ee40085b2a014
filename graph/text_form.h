// The text form of graphs, for tests, `plan show` and the docs (docs/text-form.md). Pure functions,
// except for `weights`.
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
// One statement per line; // and # start comments. Operators have their text names. Attributes that
// have a default may be left out. Calls may nest.
#pragma once

#include <string>
#include <string_view>

#include "graph/graph.h"
#include "graph/weights.h"

namespace ag {

// Returns the graph. kInvalidArgument with "line L:C: what" for every mistake. Puts constants with
// data (inline values, seed) into `weights` when it is not null.
StatusOr<Graph> ParseGraph(std::string_view text, MemoryWeights* weights = nullptr);

// Returns a text that parses to an equal graph. A constant that is too large to be inline appears
// as its digest.
std::string FormatGraph(const Graph& graph);

}  // namespace ag
