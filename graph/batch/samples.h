// Whether a graph computes each sample of its batch by itself. Only then may parts of the batch run
// one after the other. Pure functions.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace ag {

struct Samples {
  int64_t batch = 0;
  std::vector<int> axis_of;  // By NodeId: the axis of the samples in its results; -1: a constant.
};

// Returns where the samples of the batch, axis 0 of every input, lie in all tensors.
// kUnimplemented names the operator that mixes samples (a reduction over the batch, an operator in
// ONNX's own form such as a batch norm that trains), or whose batch is fixed (a reshape to another
// number of rows, an operand with the size of the batch written into it); kInvalidArgument: inputs
// of different batches, an input without axes.
StatusOr<Samples> FindSamples(const Graph& graph);

// As FindSamples; kInvalidArgument also when `parts` equal parts do not make the batch.
StatusOr<Samples> FindSamples(const Graph& graph, int64_t parts);

}  // namespace ag
