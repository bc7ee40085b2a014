#include "device/cuda/packed_constant.h"

#include <cstring>
#include <numeric>

#include "graph/half.h"

namespace ag::cuda {
namespace {

// Where element i of the reordered tensor lies in the given one.
std::vector<int64_t> StepsOf(const Shape& shape, const std::vector<int>& order) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  std::vector<int64_t> steps;
  for (const int axis : order) steps.push_back(strides[axis]);
  return steps;
}

// Calls visit(from) for every element of the reordered tensor, in its order.
template <class Visit>
void ForEachInOrder(const Shape& shape, const std::vector<int>& order, const Visit& visit) {
  const int64_t count = NumElements(shape);
  if (order.empty()) {
    for (int64_t i = 0; i < count; ++i) visit(i);
    return;
  }
  const std::vector<int64_t> steps = StepsOf(shape, order);
  std::vector<int64_t> at(order.size(), 0);
  int64_t from = 0;
  for (int64_t i = 0; i < count; ++i) {
    visit(from);
    for (size_t axis = order.size(); axis-- > 0;) {
      from += steps[axis];
      if (++at[axis] < shape[order[axis]]) break;
      from -= steps[axis] * at[axis];
      at[axis] = 0;
    }
  }
}

void Store(float value, float* to) { *to = value; }
template <uint16_t (*kConvert)(float)>
struct Word {
  uint16_t bits;
};
template <uint16_t (*kConvert)(float)>
void Store(float value, Word<kConvert>* to) {
  to->bits = kConvert(value);
}

template <class T, class Read>
std::vector<std::byte> Packed(const Shape& shape, const std::vector<int>& order, const Read& read) {
  std::vector<std::byte> bytes(NumElements(shape) * sizeof(T));
  std::byte* to = bytes.data();
  ForEachInOrder(shape, order, [&](int64_t from) {
    T value;
    Store(read(from), &value);
    std::memcpy(to, &value, sizeof(T));
    to += sizeof(T);
  });
  return bytes;
}

template <class Read>
StatusOr<std::vector<std::byte>> PackedAs(DType stored, const Shape& shape,
                                          const std::vector<int>& order, const Read& read) {
  if (stored == DType::kFloat32) return Packed<float>(shape, order, read);
  if (stored == DType::kFloat16) return Packed<Word<FloatToHalf>>(shape, order, read);
  if (stored == DType::kBFloat16) return Packed<Word<FloatToBFloat16>>(shape, order, read);
  return Err(StatusCode::kUnimplemented, "constant {}: cannot be stored as {}",
             ShapeToString(shape), DTypeName(stored));
}

}  // namespace

StatusOr<std::vector<std::byte>> PackTensor(const Tensor& tensor, DType stored,
                                            const std::vector<int>& order) {
  AG_CHECK(order.empty() || order.size() == tensor.type().shape.size());
  if (!IsFloat(tensor.type().dtype)) {
    return Err(StatusCode::kUnimplemented, "constant {}: cannot be stored as {}",
               tensor.type().ToString(), DTypeName(stored));
  }
  if (tensor.type().dtype == DType::kFloat32) {
    const auto values = tensor.As<float>();
    return PackedAs(stored, tensor.type().shape, order, [&](int64_t i) { return values[i]; });
  }
  return PackedAs(stored, tensor.type().shape, order,
                  [&](int64_t i) { return static_cast<float>(tensor.At(i)); });
}

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
    const Tensor same = Tensor::View({summands[0].type().dtype, recipe.shape}, summands[0].bytes(),
                                     std::make_shared<Tensor>(summands[0]));
    return PackTensor(same, recipe.stored, recipe.order);
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
  return PackTensor(sum, recipe.stored, recipe.order);
}

}  // namespace ag::cuda
