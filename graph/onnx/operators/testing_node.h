// One node for the tests of kernels. Test code only.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "graph/onnx/operators/operators.h"

namespace ag {

struct TestNode {
  std::string op_type;  // Of another domain than the default one "domain.Name".
  int64_t opset = 17;
  size_t outputs = 1;
  std::vector<std::pair<std::string, int64_t>> ints = {};
  std::vector<std::pair<std::string, std::string>> strings = {};
  std::vector<std::pair<std::string, float>> floats = {};
  std::vector<std::pair<std::string, std::vector<int64_t>>> int_lists = {};
};

// Returns the results of the node on the operands; Tensor() stands for an omitted one.
inline StatusOr<std::vector<Tensor>> RunNode(const TestNode& test,
                                             const std::vector<Tensor>& inputs) {
  const size_t dot = test.op_type.rfind('.');
  OnnxNode node{.op_type = test.op_type.substr(dot == std::string::npos ? 0 : dot + 1)};
  if (dot != std::string::npos) node.domain = test.op_type.substr(0, dot);
  node.outputs.assign(test.outputs, "y");
  for (const auto& [name, value] : test.ints) {
    node.attributes.push_back({.name = name, .type = OnnxAttributeType::kInt, .i = value});
  }
  for (const auto& [name, value] : test.strings) {
    node.attributes.push_back({.name = name, .type = OnnxAttributeType::kString, .s = value});
  }
  for (const auto& [name, value] : test.floats) {
    node.attributes.push_back({.name = name, .type = OnnxAttributeType::kFloat, .f = value});
  }
  for (const auto& [name, value] : test.int_lists) {
    node.attributes.push_back({.name = name, .type = OnnxAttributeType::kInts, .ints = value});
  }
  OperatorRun run = {.node = node, .opset = test.opset};
  for (const Tensor& input : inputs) {
    const bool omitted = input.bytes().empty() && input.type() == TensorType{};
    node.inputs.emplace_back(omitted ? "" : "x");
    run.inputs.push_back(omitted ? nullptr : &input);
  }
  return RunOperator(run);
}

// Tensors of the values.
inline Tensor OfType(DType dtype, Shape shape, const std::vector<double>& values) {
  return Tensor::FromDoubles({dtype, std::move(shape)}, values);
}
inline Tensor F32(Shape shape, const std::vector<double>& values) {
  return OfType(DType::kFloat32, std::move(shape), values);
}
inline Tensor I64(Shape shape, const std::vector<int64_t>& values) {
  return Tensor::FromInts(std::move(shape), values);
}

inline StatusCode CodeOf(const TestNode& node, const std::vector<Tensor>& inputs) {
  return RunNode(node, inputs).status().code();
}
inline std::vector<double> Numbers(const Tensor& tensor) { return tensor.ToDoubles(); }

}  // namespace ag
