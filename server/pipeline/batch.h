// The batch of a request: inputs whose batch is open get it, and what was asked for is checked by
// name. Pure functions.
#pragma once

#include "autograph/v1/optimizer.pb.h"
#include "graph/onnx/imported_model.h"
#include "server/pipeline/other_sizes.h"

namespace ag {

// Returns the shapes that give every input asked.batch() samples along its first axis; empty where
// all have them. kInvalidArgument names an input whose batch the model or asked.shapes() fix at
// another size, or whose first axis is a sequence by its name.
StatusOr<ShapesByInput> ShapesAtBatch(const autograph::v1::OptimizeRequest& asked,
                                      const ImportedModel& model);

// Checks that `graph`, the cleaned-up input, has what the objective needs: for throughput several
// samples that do not depend on each other. kInvalidArgument says what it has.
Status CheckObjective(const autograph::v1::OptimizeRequest& asked, const Graph& graph);

// Sets batch and samples_per_second of a result whose latency is known.
void TakeThroughput(const Graph& graph, autograph::v1::Result* result);

}  // namespace ag
