// Runs operators inside a kernel, for operators that are a chain of others. Pure functions.
#pragma once

#include <initializer_list>
#include <vector>

#include "graph/onnx/operators/operator_call.h"

namespace ag::onnx_operators {

// Returns a node of the default domain with the attributes of the call, except `dropped`. All of
// the call's count as read: the inner operator checks those it gets.
OnnxNode InnerNode(OperatorCall& call, std::string op_type,
                   std::initializer_list<std::string_view> dropped = {});
// Appends an attribute.
void SetAttribute(OnnxNode& node, std::string name, int64_t value);
void SetAttribute(OnnxNode& node, std::string name, Ints values);

// Returns the results of the node on the operands, null for omitted ones, with the limits of the
// call.
StatusOr<std::vector<Tensor>> RunInner(const OperatorCall& call, OnnxNode node, int64_t opset,
                                       const std::vector<const Tensor*>& inputs,
                                       size_t results = 1);

// Runs the call as one of an operator of the default domain: same operands, attributes and results.
Status RunAs(OperatorCall& call, std::string op_type, int64_t opset);

}  // namespace ag::onnx_operators
