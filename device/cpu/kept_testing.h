// What tests of kernels of operators in ONNX's own form share.
#pragma once

#include <string>
#include <vector>

#include "graph/onnx/wire.h"
#include "graph/tensor.h"

namespace ag::cpu {

inline OnnxAttribute IntOf(const char* name, int64_t value) {
  return {.name = name, .type = OnnxAttributeType::kInt, .i = value};
}
inline OnnxAttribute IntsOf(const char* name, std::vector<int64_t> values) {
  return {.name = name, .type = OnnxAttributeType::kInts, .ints = std::move(values)};
}
inline OnnxAttribute WordOf(const char* name, const char* value) {
  return {.name = name, .type = OnnxAttributeType::kString, .s = value};
}

// A node with values for all its operands; an empty tensor is an omitted one.
struct NodeCase {
  const char* name;
  OnnxNode node;  // Without operands and results.
  std::vector<Tensor> operands;
  std::string outputs;
  bool is_fast = true;
  int64_t opset = 17;
  int inputs = 1;  // So many operands are inputs, the others constants.
  int first_input = 0;
  std::string kernel = {};  // One of its kernels; "": any.
};

// Compares each of the node's kernels, on each number of cores up to four, with its definition.
// Results of floats may be 1e-5 of the largest apart. kept_test.cc has it.
void CheckNode(const NodeCase& c);

}  // namespace ag::cpu
