// The models that the benchmarks take: names of the zoo and files.
#pragma once

#include <memory>
#include <string>

#include "graph/graph.h"
#include "graph/weights.h"

namespace ag {

// A graph, as imported, and what its weights lie in.
struct LoadedModel {
  std::unique_ptr<const WeightSource> weights;
  Graph graph;
};

// Returns the model in a file whose name ends with ".onnx", else the zoo's model of that name. The
// errors of ImportOnnx and BuildZooModel.
StatusOr<LoadedModel> LoadModel(const std::string& name);

}  // namespace ag
