// One node for the tests of kernels. Test code only.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "graph/onnx/operators/operators.h"

namespace ag {

struct TestNode {
  std::string op_type;
  int64_t opset = 17;
  size_t outputs = 1;
  std::vector<std::pair<std::string, int64_t>> ints = {};
  std::vector<std::pair<std::string, std::string>> strings = {};
};

// Returns the results of the node on the operands.
inline StatusOr<std::vector<Tensor>> RunNode(const TestNode& test,
                                             const std::vector<Tensor>& inputs) {
  OnnxNode node{.op_type = test.op_type};
  node.inputs.assign(inputs.size(), "x");
  node.outputs.assign(test.outputs, "y");
  for (const auto& [name, value] : test.ints) {
    node.attributes.push_back({.name = name, .type = OnnxAttributeType::kInt, .i = value});
  }
  for (const auto& [name, value] : test.strings) {
    node.attributes.push_back({.name = name, .type = OnnxAttributeType::kString, .s = value});
  }
  OperatorRun run = {.node = node, .opset = test.opset};
  for (const Tensor& input : inputs) run.inputs.push_back(&input);
  return RunOperator(run);
}

inline std::vector<double> Numbers(const Tensor& tensor) { return tensor.ToDoubles(); }

}  // namespace ag
