// What an import takes and gives. Plain data.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "graph/onnx/origin.h"

namespace ag {

struct ImportLimits {
  int64_t model_bytes_max = int64_t{32} << 30;  // With all weights inside.
  int64_t nodes_max = 200'000;
  int64_t tensor_bytes_max = int64_t{4} << 30;  // For each tensor, also activations.
  int64_t total_bytes_max = int64_t{64} << 30;  // For all activations and constants together.
  int rank_max = 16;
  int subgraph_depth_max = 16;
};

struct ImportOptions {
  // Bound shapes by input name ("x=1x3x224x224"); they replace the model's.
  std::map<std::string, Shape> shapes;
  ImportLimits limits;
};

struct ImportedModel {
  Graph graph;
  OnnxOrigin origin;
  std::vector<std::string> warnings;  // For example "plan ignored: ...".
  std::string chosen_sizes;  // The warning that names sizes that nobody gave; "": none were chosen.
  // "autograph.plan.*" metadata: key and plan bytes.
  std::vector<std::pair<std::string, std::string>> plans;
  int64_t weight_bytes = 0;
};

}  // namespace ag
