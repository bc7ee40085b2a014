// Whole tensors as vectors of Wide<T>, for kernels that exist once for each such type: double,
// int64_t and uint64_t (bool too). Pure functions.
#pragma once

#include <utility>
#include <vector>

#include "graph/onnx/operators/operator_call.h"

namespace ag::onnx_operators {

// kUnimplemented: strings, and types that ForAny does not know, such as float8: they have no wide
// type.
inline Status CheckHasWide(DType dtype) {
  return ForAny(dtype, []<class T>() { return OkStatus(); });
}

// Calls run<W>() for the type in which kernels compute on elements of `dtype`. Errors: those of
// CheckHasWide.
template <class F>
Status ForWide(DType dtype, F&& run) {
  AG_TRY(CheckHasWide(dtype));
  if (IsFloat(dtype)) return run.template operator()<double>();
  const bool is_signed = dtype == DType::kInt64 || dtype == DType::kInt32 ||
                         dtype == DType::kInt16 || dtype == DType::kInt8;
  return is_signed ? run.template operator()<int64_t>() : run.template operator()<uint64_t>();
}

// Returns the elements of a tensor. REQUIRES: CheckHasWide. Integers become other integers as in
// C++; a floating point number becomes the nearest integer toward zero, and NaN becomes 0.
template <class W>
std::vector<W> Widened(const Tensor& tensor);

// Makes result `i` of the values, each rounded or wrapped once. REQUIRES: one for each element.
template <class W>
Status GiveNarrowed(OperatorCall& call, size_t i, const TensorType& type,
                    const std::vector<W>& values);

// Returns the integer next to `value` toward zero; NaN gives 0, others saturate.
template <class W>
W Truncated(double value);

// Returns the least and the largest element of `dtype`; infinities of floating point types.
// REQUIRES: W is the wide type of `dtype`.
template <class W>
std::pair<W, W> LimitsOf(DType dtype);

}  // namespace ag::onnx_operators
