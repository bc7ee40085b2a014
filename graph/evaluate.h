// Runs a graph on the reference kernels: the meaning of every operator, in plain code. Slow, exact,
// and the judge of every rule, device and export.
#pragma once

#include <functional>
#include <vector>

#include "graph/graph.h"
#include "graph/weights.h"

namespace ag {

struct EvaluateOptions {
  int threads =
      1;  // Contractions are blocked over these many threads; the result does not depend on it.
  // Called after each node, e.g. to report progress; a non-OK status stops the run with it.
  std::function<Status(NodeId)> on_node;
};

// Computes every output of `graph` in double precision and rounds once, at the outputs, to their
// dtypes. `inputs` stand in the order of graph.inputs(). Values are freed after their last use.
// kInvalidArgument: an input's type differs (names it). kUnimplemented: an opaque node.
StatusOr<std::vector<Tensor>> Evaluate(const Graph& graph, const std::vector<Tensor>& inputs,
                                       const WeightSource& weights,
                                       const EvaluateOptions& options = {});

// The same at edges of the caller's choice.
StatusOr<std::vector<Tensor>> EvaluateEdges(const Graph& graph, std::span<const Edge> edges,
                                            const std::vector<Tensor>& inputs,
                                            const WeightSource& weights,
                                            const EvaluateOptions& options = {});

// The value of a constant edge (graph.is_constant): a constant's bytes, or the recipe (operators
// over constants) made real, in double precision, rounded once to the edge's dtype. This is the one
// function that does so: worker and exporter get bit-identical bytes (DESIGN section 9).
// REQUIRES: graph.is_constant(edge.node).
StatusOr<Tensor> Materialize(const Graph& graph, Edge edge, const WeightSource& weights);

}  // namespace ag
