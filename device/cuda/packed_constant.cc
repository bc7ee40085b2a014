#include "device/cuda/packed_constant.h"

#include "device/cuda/launch/host_form.h"

namespace ag::cuda {
namespace {

bool IsStoredFloat(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat16 || dtype == DType::kBFloat16;
}

// Returns the tensor in f32.
Tensor Widened(const Tensor& tensor) {
  Tensor wide = Tensor::Zeros({DType::kFloat32, tensor.type().shape});
  for (int64_t i = 0; i < tensor.type().NumElements(); ++i) {
    wide.Mutable<float>()[i] = static_cast<float>(tensor.At(i));
  }
  return wide;
}

StatusOr<std::vector<std::byte>> PackAs(const ConstantRecipe& recipe, const Tensor& tensor) {
  const DType stored = recipe.stored;
  const DType dtype = tensor.type().dtype;
  if (!IsFloat(dtype) || !IsStoredFloat(stored)) {
    return Err(StatusCode::kUnimplemented, "constant {}: cannot be stored as {}",
               tensor.type().ToString(), DTypeName(stored));
  }
  AG_CHECK(recipe.order.empty() || recipe.order.size() == recipe.shape.size());
  AG_CHECK(recipe.padded.empty() || recipe.padded.size() == recipe.shape.size());
  const bool is_ready = dtype == stored || dtype == DType::kFloat32;
  return PackTensor(is_ready ? tensor : Widened(tensor), stored, recipe.order, recipe.padded);
}

}  // namespace

StatusOr<std::vector<std::byte>> PackConstant(const ConstantRecipe& recipe, Constants& constants) {
  const int64_t count = NumElements(recipe.shape);
  std::vector<Tensor> summands;
  for (const Edge edge : recipe.sum) {
    AG_LET(Tensor tensor, constants.Get(edge));
    AG_CHECK(tensor.type().NumElements() == count || tensor.type().NumElements() == 1);
    summands.push_back(std::move(tensor));
  }
  AG_CHECK(!summands.empty());
  const TensorType type{DType::kFloat32, recipe.shape};
  if (summands.size() == 1 && summands[0].type().NumElements() == count) {
    return PackAs(recipe, summands[0].Retyped({summands[0].type().dtype, recipe.shape}));
  }
  Tensor sum = Tensor::Zeros(type);
  const auto values = sum.Mutable<float>();
  for (int64_t i = 0; i < count; ++i) {
    double total = 0;
    for (const Tensor& summand : summands) {
      total += summand.At(summand.type().NumElements() == 1 ? 0 : i);
    }
    values[i] = static_cast<float>(total);
  }
  return PackAs(recipe, sum);
}

}  // namespace ag::cuda
