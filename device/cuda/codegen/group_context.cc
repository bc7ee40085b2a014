#include "device/cuda/codegen/group_context.h"

#include <algorithm>

namespace ag::cuda {

namespace {

constexpr std::string_view kWords[] = {"fp32", "tf32", "fp16", "bf16"};  // By Precision.

}  // namespace

StatusOr<Precision> PrecisionOf(const Policy& policy) {
  const auto word = std::ranges::find(kWords, policy.precision);
  if (word != std::end(kWords)) return static_cast<Precision>(word - kWords);
  return Err(StatusCode::kInvalidArgument,
             "cuda: precision '{}'; it offers fp32, tf32, fp16 and bf16", policy.precision);
}

DType StoredDType(DType dtype, Precision precision) {
  return ag::StoredDType(dtype, kWords[static_cast<size_t>(precision)]);
}

int GroupContext::InputOf(Edge edge) const {
  const auto at = std::ranges::find(group.inputs, edge, &Port::edge);
  return at == group.inputs.end() ? -1 : static_cast<int>(at - group.inputs.begin());
}

bool GroupContext::IsInside(NodeId id) const { return std::ranges::binary_search(group.nodes, id); }

}  // namespace ag::cuda
