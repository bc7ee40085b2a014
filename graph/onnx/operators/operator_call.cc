#include "graph/onnx/operators/operator_call.h"

namespace ag::onnx_operators {

OperatorCall::OperatorCall(const OnnxNode& node, int64_t opset, std::vector<const Tensor*> inputs,
                           int64_t bytes_max, int threads)
    : NodeAttributes(node),
      opset_(opset),
      bytes_max_(bytes_max),
      threads_(threads),
      inputs_(std::move(inputs)),
      results_(node.outputs.size()) {}

Status OperatorCall::CheckInputs(size_t low, size_t high) const {
  for (size_t i = 0; i < low; ++i) {
    if (!Has(i)) return Err(StatusCode::kInvalidArgument, "input {} is missing", i);
  }
  if (size() <= high) return OkStatus();
  return Err(StatusCode::kInvalidArgument, "expected at most {} inputs, got {}", high, size());
}

Status OperatorCall::CheckType(size_t i, DType dtype) const {
  if (TypeOf(i) == dtype) return OkStatus();
  return Err(StatusCode::kInvalidArgument, "input {}: expected {}, got {}", i, DTypeName(dtype),
             Type(i).ToString());
}

Status OperatorCall::CheckRank(size_t i, int64_t rank) const {
  if (Rank(i) == rank) return OkStatus();
  return Err(StatusCode::kInvalidArgument, "input {}: expected rank {}, got {}", i, rank,
             Type(i).ToString());
}

Status OperatorCall::CheckShape(size_t i, const Shape& expected) const {
  if (!Has(i) || ShapeOf(i) == expected) return OkStatus();
  return Err(StatusCode::kInvalidArgument, "input {}: expected {}, got {}", i,
             ShapeToString(expected), ShapeToString(ShapeOf(i)));
}

StatusOr<Ints> OperatorCall::IntsAt(size_t i) const {
  StatusOr<Ints> ints = IntsOf(In(i));
  AG_TRY(ints, "input {}", i);
  return ints;
}

StatusOr<int64_t> OperatorCall::IntAt(size_t i) const {
  AG_LET(const Ints ints, IntsAt(i));
  if (ints.size() == 1) return ints[0];
  return Err(StatusCode::kInvalidArgument, "input {}: expected one element, got {}", i,
             Type(i).ToString());
}

StatusOr<DType> OperatorCall::ResultType(DType otherwise) {
  if (!HasAttribute("dtype")) return otherwise;
  return DTypeFromOnnx(static_cast<int32_t>(Int("dtype", 0)));
}

StatusOr<int64_t> OperatorCall::Axis(int64_t otherwise) {
  return ResolveAxis(Int("axis", otherwise), Rank(0));
}

StatusOr<char*> OperatorCall::MakeBytes(size_t i, TensorType type) {
  AG_TRY(ag::CheckType(type), "output {}", i);
  if (SizeOf(type.dtype) == 0) return RefuseType(type.dtype);
  if (type.Bytes() > bytes_max_) {
    return Err(StatusCode::kResourceExhausted, "output {}: {} has {} bytes, the limit is {}", i,
               type.ToString(), type.Bytes(), bytes_max_);
  }
  Give(i, Tensor::Zeros(std::move(type)));
  return results_[i].Mutable<char>().data();
}

void OperatorCall::Give(size_t i, Tensor tensor) {
  if (i >= results_.size()) results_.resize(i + 1);
  results_[i] = std::move(tensor);
}

}  // namespace ag::onnx_operators
