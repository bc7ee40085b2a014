// The model zoo: the papers' networks at their published sizes, built with our own graph builder
// from a seed. He-scaled weights, non-trivial batch-norm statistics; outputs are not a flat
// softmax.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "graph/weights.h"

namespace ag {

struct ZooEntry {
  std::string_view name;         // "inception_v3", "tiny_cnn", ...
  std::string_view description;  // One line, with input size and source.
  bool tiny = false;             // For tests: small and quick.
};
const std::vector<ZooEntry>& Zoo();

struct ZooOptions {
  int64_t batch = 1;
  uint64_t seed = 1;
};

// kNotFound with the closest name. The constants' bytes go into `weights`.
StatusOr<Graph> BuildZooModel(std::string_view name, const ZooOptions& options,
                              MemoryWeights* weights);

// The model as ONNX bytes (opset 17), batch norms and biases as an exporter would write them.
StatusOr<std::string> ZooModelOnnx(std::string_view name, const ZooOptions& options = {});

}  // namespace ag
