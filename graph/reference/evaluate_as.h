// Runs a graph on the reference kernels over one scalar of graph/reference/scalar.h: exact
// arithmetic proves rules. No value is rounded to its type. Instantiated for double, Rational and
// Residue. Thread-safe.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "graph/array.h"
#include "graph/graph.h"
#include "graph/reference/scalar.h"

namespace ag {

// Returns the value of a Constant node.
template <class T>
using ConstantValue = std::function<StatusOr<Array<T>>(NodeId)>;

struct RunOptions {
  int threads = 1;
  std::function<Status(NodeId)> on_node;  // Called after each node; an error ends the run.
};

// Returns the values of `edges`. Computes only the nodes that they depend on and frees values after
// their last use. `inputs` has the order of graph.inputs(); it may be empty when no edge depends on
// an input. kInvalidArgument: an input has another shape. kUnimplemented: an opaque node.
// kFailedPrecondition: a result is poisoned (the message names the edge). kOutOfRange: an index of
// a gather is outside its axis.
template <class T>
StatusOr<std::vector<Array<T>>> EvaluateEdgesAs(const Graph& graph, std::span<const Edge> edges,
                                                const std::vector<Array<T>>& inputs,
                                                const ConstantValue<T>& constant,
                                                const RunOptions& options = {});

// Returns every output of the graph.
template <class T>
StatusOr<std::vector<Array<T>>> EvaluateAs(const Graph& graph, const std::vector<Array<T>>& inputs,
                                           const ConstantValue<T>& constant,
                                           const RunOptions& options = {});

// Returns random values for proofs. Of float types: residues are uniform over both fields,
// rationals are n/d with |n| <= 8 and d <= 3, doubles are normal. Integers are in [0, int_below),
// bools 0 or 1.
template <class T>
Array<T> RandomArray(const TensorType& type, uint64_t seed, int64_t int_below = 2);

// Returns the same numbers as scalars of type T.
template <class T>
Array<T> ArrayOf(const Shape& shape, std::span<const double> values);

}  // namespace ag
