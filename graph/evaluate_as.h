// Runs a graph on the reference kernels over any scalar of graph/scalar.h: exact arithmetic for the
// proof of rules, double for everything else (graph/evaluate.h). Thread-safe; instantiated for
// double, Rational and Residue.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "graph/array.h"
#include "graph/graph.h"
#include "graph/scalar.h"

namespace ag {

// The value of a Constant node.
template <class T>
using ConstantValue = std::function<StatusOr<Array<T>>(NodeId)>;

struct RunOptions {
  int threads = 1;
  std::function<Status(NodeId)> on_node;  // Called after each node; an error stops the run.
};

// Computes `edges`; only nodes they depend on are computed, values are freed after their last use.
// `inputs` stand in the order of graph.inputs(); none are needed when no edge depends on one.
// kInvalidArgument: an input's shape differs. kUnimplemented: an opaque node. kFailedPrecondition:
// a result is poisoned (names the edge). kOutOfRange: an index of a gather is outside its axis.
template <class T>
StatusOr<std::vector<Array<T>>> EvaluateEdgesAs(const Graph& graph, std::span<const Edge> edges,
                                                const std::vector<Array<T>>& inputs,
                                                const ConstantValue<T>& constant,
                                                const RunOptions& options = {});

// Computes every output of the graph.
template <class T>
StatusOr<std::vector<Array<T>>> EvaluateAs(const Graph& graph, const std::vector<Array<T>>& inputs,
                                           const ConstantValue<T>& constant,
                                           const RunOptions& options = {});

// Random values for proofs: of floats, residues uniform over both fields, rationals n/d with |n| <=
// 8 and d <= 3, doubles normal; of integers, in [0, int_below); of bool, 0 or 1.
template <class T>
Array<T> RandomArray(const TensorType& type, uint64_t seed, int64_t int_below = 2);

// The same numbers in another arithmetic.
template <class T>
Array<T> ArrayOf(const Shape& shape, std::span<const double> values);

}  // namespace ag
