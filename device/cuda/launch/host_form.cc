#include "device/cuda/launch/host_form.h"

#include <algorithm>
#include <numeric>

#include "graph/half.h"

namespace ag::cuda {
namespace {

// Calls visit(plain, own) for each element: its number in plain order, and its place by `strides`,
// which are in elements by axis.
template <class Visit>
void ForEachElement(const Shape& shape, const std::vector<int64_t>& strides, Visit visit) {
  const int64_t elements = NumElements(shape);
  std::vector<int64_t> index(shape.size(), 0);
  int64_t own = 0;
  for (int64_t i = 0; i < elements; ++i) {
    visit(i, own);
    for (size_t axis = shape.size(); axis-- > 0;) {
      own += strides[axis];
      if (++index[axis] < shape[axis]) break;
      own -= strides[axis] * shape[axis];
      index[axis] = 0;
    }
  }
}

// Calls visit with a value of an unsigned type as wide as an element.
template <class Visit>
void WithWidth(int64_t bytes, Visit visit) {
  if (bytes == 1) return visit(uint8_t{});
  if (bytes == 2) return visit(uint16_t{});
  if (bytes == 4) return visit(uint32_t{});
  visit(uint64_t{});
}

// The places of elements: their strides by axis, and the number of elements including gaps.
struct Spread {
  std::vector<int64_t> strides;
  int64_t elements = 0;
};

Spread SpreadIn(const Shape& shape, Layout layout) {
  return {DenseStrides(shape, layout), LayoutBytes({DType::kInt8, shape}, layout)};
}

// Returns the tensor's elements, as `stored`, at their strides; zeros in the gaps.
std::vector<std::byte> Pack(const Tensor& tensor, DType stored, const Spread& spread) {
  const TensorType& type = tensor.type();
  const std::vector<int64_t>& strides = spread.strides;
  std::vector<std::byte> bytes(spread.elements * SizeOf(stored));
  if (stored != type.dtype) {
    const auto convert = stored == DType::kFloat16 ? FloatToHalf : FloatToBFloat16;
    const std::span<const float> plain = tensor.As<float>();
    auto* own = reinterpret_cast<uint16_t*>(bytes.data());
    ForEachElement(type.shape, strides, [&](int64_t i, int64_t k) { own[k] = convert(plain[i]); });
    return bytes;
  }
  WithWidth(SizeOf(type.dtype), [&](auto element) {
    using T = decltype(element);
    const std::span<const T> plain = tensor.As<T>();
    auto* own = reinterpret_cast<T*>(bytes.data());
    ForEachElement(type.shape, strides, [&](int64_t i, int64_t k) { own[k] = plain[i]; });
  });
  return bytes;
}

}  // namespace

bool HasHostForm(const TensorType& type, Layout layout, Precision precision) {
  return StoredDType(type.dtype, precision) == type.dtype &&
         (layout == Layout::kPlain || HasSameBytes(type, layout, Layout::kPlain));
}

std::vector<std::byte> ToDeviceForm(const Tensor& tensor, Layout layout, Precision precision) {
  return Pack(tensor, StoredDType(tensor.type().dtype, precision),
              SpreadIn(tensor.type().shape, layout));
}

bool HasZeroPadding(std::span<const std::byte> bytes, const TensorType& stored, Layout layout) {
  AG_CHECK(static_cast<int64_t>(bytes.size()) == LayoutBytes(stored, layout));
  if (stored.Bytes() == LayoutBytes(stored, layout)) return true;
  const int64_t size = SizeOf(stored.dtype);
  std::vector<std::byte> gaps(bytes.begin(), bytes.end());
  ForEachElement(stored.shape, DenseStrides(stored.shape, layout), [&](int64_t, int64_t own) {
    std::fill_n(gaps.begin() + own * size, size, std::byte{0});
  });
  return std::ranges::all_of(gaps, [](std::byte byte) { return byte == std::byte{0}; });
}

std::vector<std::byte> PackTensor(const Tensor& tensor, DType stored, std::span<const int> order,
                                  std::span<const int64_t> padded) {
  const Shape& shape = tensor.type().shape;
  if (padded.empty()) padded = shape;
  std::vector<int> axes(order.begin(), order.end());
  if (order.empty()) {
    axes.resize(shape.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  Spread spread{std::vector<int64_t>(shape.size(), 1), 1};
  for (size_t i = axes.size(); i-- > 0;) {
    AG_CHECK(padded[axes[i]] >= shape[axes[i]]);
    spread.strides[axes[i]] = spread.elements;
    spread.elements *= padded[axes[i]];
  }
  return Pack(tensor, stored, spread);
}

void FromDeviceForm(std::span<const std::byte> bytes, Layout layout, Precision precision,
                    Tensor* tensor) {
  const TensorType& type = tensor->type();
  const DType stored = StoredDType(type.dtype, precision);
  AG_CHECK(static_cast<int64_t>(bytes.size()) == LayoutBytes({stored, type.shape}, layout));
  const std::vector<int64_t> strides = DenseStrides(type.shape, layout);
  if (stored != type.dtype) {
    const auto convert = stored == DType::kFloat16 ? HalfToFloat : BFloat16ToFloat;
    const std::span<float> plain = tensor->Mutable<float>();
    const auto* own = reinterpret_cast<const uint16_t*>(bytes.data());
    ForEachElement(type.shape, strides, [&](int64_t i, int64_t k) { plain[i] = convert(own[k]); });
    return;
  }
  WithWidth(SizeOf(type.dtype), [&](auto element) {
    using T = decltype(element);
    const std::span<T> plain = tensor->Mutable<T>();
    const auto* own = reinterpret_cast<const T*>(bytes.data());
    ForEachElement(type.shape, strides, [&](int64_t i, int64_t k) { plain[i] = own[k]; });
  });
}

}  // namespace ag::cuda
