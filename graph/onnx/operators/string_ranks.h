// Strings as numbers, for operators that only move and compare elements: the rank of each string
// among all those of the operands, in their order as bytes. Rank 0 is the empty string, so zeros
// that an operator fills in are empty. Immutable.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "graph/tensor.h"

namespace ag::onnx_operators {

class StringRanks {
 public:
  // Ranks the strings of all these tensors; others, and null, do not count. The tensors must
  // outlive this.
  explicit StringRanks(std::span<const Tensor* const> tensors);

  // Returns the ranks of a tensor of strings as i64. REQUIRES: it was given.
  Tensor RanksOf(const Tensor& strings) const;
  // Returns the strings of these ranks. kInvalidArgument: an element is no rank, as where an
  // operator mixed strings with numbers.
  StatusOr<Tensor> StringsOf(const Tensor& ranks) const;

 private:
  std::vector<std::string_view> sorted_;
};

}  // namespace ag::onnx_operators
