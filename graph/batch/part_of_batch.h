// The graph of a part of the batch. Pure functions.
#pragma once

#include "graph/graph.h"

namespace ag {

// Returns the graph whose batch is one of `parts` equal parts of the graph's: the same nodes under
// the same ids, with the sizes of the part. Run on the parts one after the other, in the order of
// the samples, it computes what the graph computes; part i of every input and output is the i-th of
// `parts` equal pieces of its bytes. One part is the graph itself. The errors of FindSamples
// (graph/batch/samples.h); kUnimplemented: an output whose first axis is not that of the samples.
StatusOr<Graph> PartOfBatch(const Graph& graph, int64_t parts);

}  // namespace ag
