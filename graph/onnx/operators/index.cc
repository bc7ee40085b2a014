#include "graph/onnx/operators/operator_call.h"

namespace ag::onnx_operators {

std::span<const OperatorRow> IndexOperators() { return {}; }

}  // namespace ag::onnx_operators
