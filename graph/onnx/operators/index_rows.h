// The rows of the family `index` by file. Each file lists its own.
#pragma once

#include <span>

#include "graph/onnx/operators/operator_call.h"

namespace ag::onnx_operators {

std::span<const OperatorRow> MoveOperators();     // Reshape, Slice, Pad, Concat, Where, ...
std::span<const OperatorRow> FillOperators();     // Range, EyeLike, Trilu, OneHot, ...
std::span<const OperatorRow> GatherOperators();   // Gather*, Compress, NonZero, ...
std::span<const OperatorRow> ScatterOperators();  // Scatter*.
std::span<const OperatorRow> SortOperators();     // TopK, Unique.

}  // namespace ag::onnx_operators
