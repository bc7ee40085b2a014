// Tensors in files of their own. Pure functions.
#pragma once

#include <string_view>

#include "graph/tensor.h"

namespace ag {

// Returns the tensor of a serialized TensorProto, as in ONNX test data and `autograph run --input
// x=FILE.pb`. kInvalidArgument: not a protobuf, or its data do not fit its dims. kUnimplemented:
// strings.
StatusOr<Tensor> ParseTensorProto(std::string_view bytes);

}  // namespace ag
