// What of a model the IR leaves out. Plain data and pure functions.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "graph/onnx/dynamic_part.h"

namespace ag {

// The names in the user's model of one node of the imported graph; "" where it has none that can be
// kept. A weight has one value and no node.
struct NodeNames {
  std::string node;
  std::vector<std::string> values;  // By output.
  uint32_t notes = 0;               // From 1: what OnnxOrigin::notes says of the node. 0: nothing.
};

// Which tensors hold the scale and the zero point of a quantized tensor, as the model says it.
struct QuantAnnotation {
  std::string tensor;
  std::vector<std::pair<std::string, std::string>> parameters;  // Key and name.
};

// The parts of a model that the IR leaves out and that export restores.
struct OnnxOrigin {
  int64_t ir_version = 8;
  std::vector<std::pair<std::string, int64_t>> opsets;  // Domain and version.
  std::string producer_name, producer_version, domain, doc_string, graph_name;
  int64_t model_version = 0;
  std::vector<std::pair<std::string, std::string>> metadata;  // Without our own plans.
  // Sizes of inputs that the model leaves open: "x:0" and the symbol, "batch".
  std::vector<std::pair<std::string, std::string>> dim_names;
  DynamicPart dynamic;           // Empty for most models.
  std::vector<NodeNames> names;  // By node of the imported graph; may be empty.
  // Comments and metadata as the model has them: fields of GraphProto, and of NodeProtos.
  std::string graph_notes;
  std::vector<std::string> notes;
  // Names and ValueInfoProtos of inputs, outputs and inner values.
  std::vector<std::pair<std::string, std::string>> stated;
  std::vector<QuantAnnotation> annotations;
  std::vector<DynamicPart::Weight> annotation_weights;  // Constants that these name.
};

std::string EncodeOrigin(const OnnxOrigin& origin);
StatusOr<OnnxOrigin> DecodeOrigin(std::string_view bytes);

}  // namespace ag
