// Runs a graph on the reference kernels, which define every operator in plain code. Slow and exact:
// rules, devices and exports are judged by its results. Thread-safe.
#pragma once

#include <functional>
#include <vector>

#include "graph/graph.h"
#include "graph/weights.h"

namespace ag {

struct EvaluateOptions {
  int threads =
      1;  // Contractions are blocked over these many threads; the result does not depend on it.
  // Called after each node, for example to report progress. An error ends the run with that error.
  std::function<Status(NodeId)> on_node;
};

// Returns every output of `graph`. A node that computes integers from integers is exact, and wraps
// as its type does. Any other is computed in double precision and its results are rounded to their
// dtypes, as ONNX says: a cast to an integer or a comparison that stands on an edge then falls on
// the same side as in other runtimes. `inputs` has the order of graph.inputs().
// Values are freed after their last use. kInvalidArgument: an input has another type (the message
// names it). kUnimplemented: an opaque node.
StatusOr<std::vector<Tensor>> Evaluate(const Graph& graph, const std::vector<Tensor>& inputs,
                                       const WeightSource& weights,
                                       const EvaluateOptions& options = {});

// Returns the values of `edges`, as Evaluate does.
StatusOr<std::vector<Tensor>> EvaluateEdges(const Graph& graph, std::span<const Edge> edges,
                                            const std::vector<Tensor>& inputs,
                                            const WeightSource& weights,
                                            const EvaluateOptions& options = {});

// Returns the value of a constant edge: the bytes of a Constant, or the result of a recipe
// (operators over constants), each in double precision and rounded to its dtype. Worker and
// exporter both call it, so they get bit-identical bytes (docs/design.md, Processes, weights and
// keys). REQUIRES: graph.is_constant(edge.node).
StatusOr<Tensor> Materialize(const Graph& graph, Edge edge, const WeightSource& weights);

}  // namespace ag
