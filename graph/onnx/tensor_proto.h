// Tensors and other values in files of their own. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "graph/onnx/model_value.h"
#include "graph/tensor.h"

namespace ag {

// Returns the tensor of a serialized TensorProto, as in ONNX test data and `autograph run --input
// x=FILE.pb`. kInvalidArgument: not a protobuf, or its data do not fit its dims. kUnimplemented:
// strings.
StatusOr<Tensor> ParseTensorProto(std::string_view bytes);

// Returns the value of a serialized TensorProto, SequenceProto or OptionalProto, as `kind` says.
// Errors as above; kInvalidArgument also for a sequence of sequences.
StatusOr<ModelValue> ParseValueProto(std::string_view bytes, OnnxKind kind);

// Returns the tensor as a serialized TensorProto of this name.
std::string FormatTensorProto(const std::string& name, const Tensor& tensor);

}  // namespace ag
