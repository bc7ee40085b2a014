// The names of element types in generated text. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "graph/types.h"

namespace ag::cuda {

// Returns the type in memory: "float", "ag_f16", ... kUnimplemented: u64 and strings.
StatusOr<std::string_view> StoredType(DType dtype);

// Returns the type of computations: "float", "double", "long long" or "bool". REQUIRES: StoredType
// is OK.
std::string_view ComputedType(DType dtype);

// Returns `value` as a literal of the computed type: "0.5f", "3ll", "true". Of an integer type it
// is the value that the type has for it (Tensor::FromDoubles).
std::string Literal(double value, DType dtype);
std::string IntegerLiteral(int64_t value);

}  // namespace ag::cuda
