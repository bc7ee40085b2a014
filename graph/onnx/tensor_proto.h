// Tensors in files of their own. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "graph/tensor.h"

namespace ag {

// Returns the tensor of a serialized TensorProto, as in ONNX test data and `autograph run --input
// x=FILE.pb`. kInvalidArgument: not a protobuf, or its data do not fit its dims. kUnimplemented:
// strings.
StatusOr<Tensor> ParseTensorProto(std::string_view bytes);

// Returns the tensor as a serialized TensorProto of this name.
std::string FormatTensorProto(const std::string& name, const Tensor& tensor);

}  // namespace ag
