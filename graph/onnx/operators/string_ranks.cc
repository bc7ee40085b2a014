#include "graph/onnx/operators/string_ranks.h"

#include <algorithm>

namespace ag::onnx_operators {

StringRanks::StringRanks(std::span<const Tensor* const> tensors) : sorted_{""} {
  for (const Tensor* tensor : tensors) {
    if (tensor == nullptr || tensor->type().dtype != DType::kString) continue;
    const std::vector<std::string_view> strings = tensor->Strings();
    sorted_.insert(sorted_.end(), strings.begin(), strings.end());
  }
  std::ranges::sort(sorted_);
  sorted_.erase(std::unique(sorted_.begin(), sorted_.end()), sorted_.end());
}

Tensor StringRanks::RanksOf(const Tensor& strings) const {
  std::vector<int64_t> ranks;
  for (const std::string_view value : strings.Strings()) {
    ranks.push_back(std::ranges::lower_bound(sorted_, value) - sorted_.begin());
  }
  return Tensor::FromInts(strings.type().shape, ranks);
}

StatusOr<Tensor> StringRanks::StringsOf(const Tensor& ranks) const {
  const auto count = static_cast<int64_t>(sorted_.size());
  const auto is_rank = [&](int64_t i) { return i >= 0 && i < count; };
  const bool are_ranks =
      ranks.type().dtype == DType::kInt64 && std::ranges::all_of(ranks.As<int64_t>(), is_rank);
  if (!are_ranks) return Err(StatusCode::kInvalidArgument, "strings are mixed with numbers");
  std::vector<std::string_view> strings;
  for (const int64_t rank : ranks.As<int64_t>()) {
    strings.push_back(sorted_[static_cast<size_t>(rank)]);
  }
  return Tensor::FromStrings(ranks.type().shape, strings);
}

}  // namespace ag::onnx_operators
