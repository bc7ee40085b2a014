#include "device/cuda/codegen/group_context.h"

#include <algorithm>

namespace ag::cuda {

StatusOr<Precision> PrecisionOf(const Policy& policy) {
  if (policy.precision == "fp32") return Precision::kFp32;
  if (policy.precision == "tf32") return Precision::kTf32;
  if (policy.precision == "fp16") return Precision::kFp16;
  if (policy.precision == "bf16") return Precision::kBf16;
  return Err(StatusCode::kInvalidArgument,
             "cuda: precision '{}'; it offers fp32, tf32, fp16 and bf16", policy.precision);
}

DType StoredDType(DType dtype, Precision precision) {
  if (dtype != DType::kFloat32) return dtype;
  if (precision == Precision::kFp16) return DType::kFloat16;
  if (precision == Precision::kBf16) return DType::kBFloat16;
  return dtype;
}

int GroupContext::InputOf(Edge edge) const {
  const auto at = std::ranges::find(group.inputs, edge, &Port::edge);
  return at == group.inputs.end() ? -1 : static_cast<int>(at - group.inputs.begin());
}

bool GroupContext::IsInside(NodeId id) const { return std::ranges::binary_search(group.nodes, id); }

}  // namespace ag::cuda
