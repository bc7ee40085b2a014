#include "graph/onnx/operators/operator_call.h"

namespace ag::onnx_operators {

std::span<const OperatorRow> QuantOperators() { return {}; }

}  // namespace ag::onnx_operators
