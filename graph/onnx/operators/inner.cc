#include "graph/onnx/operators/inner.h"

#include <algorithm>

#include "graph/onnx/operators/operators.h"

namespace ag::onnx_operators {

OnnxNode InnerNode(OperatorCall& call, std::string op_type,
                   std::initializer_list<std::string_view> dropped) {
  OnnxNode node{.op_type = std::move(op_type)};
  for (const OnnxAttribute& attribute : call.node().attributes) {
    call.Ignore(attribute.name);
    if (std::ranges::count(dropped, attribute.name) == 0) node.attributes.push_back(attribute);
  }
  return node;
}

void SetAttribute(OnnxNode& node, std::string name, int64_t value) {
  node.attributes.push_back({.name = std::move(name), .type = OnnxAttributeType::kInt, .i = value});
}

void SetAttribute(OnnxNode& node, std::string name, Ints values) {
  node.attributes.push_back({.name = std::move(name),
                             .type = OnnxAttributeType::kInts,
                             .ints = {values.begin(), values.end()}});
}

StatusOr<std::vector<Tensor>> RunInner(const OperatorCall& call, OnnxNode node, int64_t opset,
                                       const std::vector<const Tensor*>& inputs, size_t results) {
  for (const Tensor* input : inputs) node.inputs.emplace_back(input == nullptr ? "" : "x");
  while (node.outputs.size() < results) node.outputs.emplace_back("y");
  return RunOperator({.node = node,
                      .opset = opset,
                      .inputs = inputs,
                      .bytes_max = call.bytes_max(),
                      .threads = call.threads()});
}

Status RunAs(OperatorCall& call, std::string op_type, int64_t opset) {
  OnnxNode node = InnerNode(call, std::move(op_type));
  node.outputs = call.node().outputs;
  std::vector<const Tensor*> inputs;
  for (size_t i = 0; i < call.size(); ++i) inputs.push_back(call.Has(i) ? &call.In(i) : nullptr);
  AG_LET(std::vector<Tensor> results, RunInner(call, std::move(node), opset, inputs));
  call.results() = std::move(results);
  return OkStatus();
}

}  // namespace ag::onnx_operators
