// The model zoo: the papers' networks at their published sizes, built with our own graph builder
// from a seed. Weights are He-scaled and batch-norm statistics are not trivial, so that outputs are
// not a flat softmax. Pure functions.
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

// Returns the network's graph; its constants' bytes go into `weights`. kNotFound: no such name; the
// message has the closest one.
StatusOr<Graph> BuildZooModel(std::string_view name, const ZooOptions& options,
                              MemoryWeights* weights);

// Returns the model as ONNX bytes (opset 17), with batch norms and biases as an exporter writes
// them.
StatusOr<std::string> ZooModelOnnx(std::string_view name, const ZooOptions& options = {});

}  // namespace ag
