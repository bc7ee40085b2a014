#include "graph/tensor.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <new>

#include "graph/half.h"
#include "graph/narrow.h"

namespace ag {
namespace {

constexpr std::align_val_t kAlignment{64};

// Bytes before the characters of strings; 0 for numbers.
size_t OffsetBytes(const TensorType& type) {
  if (type.dtype != DType::kString) return 0;
  return (static_cast<size_t>(type.NumElements()) + 1) * sizeof(int64_t);
}

// Truncates toward zero and saturates; NaN gives 0. C++ leaves these cases undefined.
template <class T>
T Saturate(double value) {
  if (std::isnan(value)) return 0;
  if (value <= static_cast<double>(std::numeric_limits<T>::min())) {
    return std::numeric_limits<T>::min();
  }
  if (value >= static_cast<double>(std::numeric_limits<T>::max())) {
    return std::numeric_limits<T>::max();
  }
  return static_cast<T>(value);
}

// Calls visit(load, store, element type) for the type of `dtype` in memory: load converts an
// element to double, store converts a double to an element.
template <class Visit>
void WithElement(DType dtype, Visit visit) {
  const auto cast = [](auto v) { return static_cast<double>(v); };
  switch (dtype) {
    case DType::kFloat32:
      return visit(float{}, cast, [](double v) { return static_cast<float>(v); });
    case DType::kFloat16:
      return visit(
          uint16_t{}, [](uint16_t v) { return double{HalfToFloat(v)}; }, DoubleToHalf);
    case DType::kBFloat16:
      return visit(
          uint16_t{}, [](uint16_t v) { return double{BFloat16ToFloat(v)}; }, DoubleToBFloat16);
    case DType::kFloat64:
      return visit(double{}, cast, [](double v) { return v; });
    case DType::kInt64:
      return visit(int64_t{}, cast, Saturate<int64_t>);
    case DType::kInt32:
      return visit(int32_t{}, cast, Saturate<int32_t>);
    case DType::kInt16:
      return visit(int16_t{}, cast, Saturate<int16_t>);
    case DType::kInt8:
      return visit(int8_t{}, cast, Saturate<int8_t>);
    case DType::kUInt8:
      return visit(uint8_t{}, cast, Saturate<uint8_t>);
    case DType::kBool:
      return visit(
          uint8_t{}, [](uint8_t v) { return v != 0 ? 1.0 : 0.0; },
          [](double v) { return static_cast<uint8_t>(v != 0 ? 1 : 0); });
    case DType::kUInt16:
      return visit(uint16_t{}, cast, Saturate<uint16_t>);
    case DType::kUInt32:
      return visit(uint32_t{}, cast, Saturate<uint32_t>);
    case DType::kUInt64:
      return visit(uint64_t{}, cast, Saturate<uint64_t>);
    case DType::kInt4:
    case DType::kUInt4:
    case DType::kFloat8E4M3:
    case DType::kFloat8E4M3Fnuz:
    case DType::kFloat8E5M2:
    case DType::kFloat8E5M2Fnuz:
    case DType::kFloat4E2M1:
      return visit(
          uint8_t{}, [dtype](uint8_t v) { return NarrowToDouble(dtype, v); },
          [dtype](double v) {
            const bool overflows = std::isinf(v);  // An infinity stays one where the type has it.
            return DoubleToNarrow(dtype, v,
                                  overflows ? Overflow::kOverflows : Overflow::kSaturates);
          });
    case DType::kString:
      break;
  }
  AG_CHECK(false && "strings hold no numbers");
}

// Returns an offset; mapped blobs may have any address.
int64_t OffsetAt(std::string_view bytes, size_t i) {
  int64_t offset = 0;
  std::memcpy(&offset, bytes.data() + i * sizeof(offset), sizeof(offset));
  return offset;
}

}  // namespace

bool BytesFit(const TensorType& type, std::string_view bytes) {
  const size_t head = OffsetBytes(type);
  if (head == 0) return static_cast<int64_t>(bytes.size()) == type.Bytes();
  if (bytes.size() < head || OffsetAt(bytes, 0) != 0) return false;
  const size_t count = head / sizeof(int64_t) - 1;
  for (size_t i = 0; i < count; ++i) {
    if (OffsetAt(bytes, i + 1) < OffsetAt(bytes, i)) return false;
  }
  return OffsetAt(bytes, count) == static_cast<int64_t>(bytes.size() - head);
}

Tensor Tensor::Zeros(TensorType type) {
  const size_t size = OffsetBytes(type) + static_cast<size_t>(type.Bytes());
  return Allocated(std::move(type), size);
}

Tensor Tensor::Allocated(TensorType type, size_t size) {
  Tensor tensor;
  tensor.size_ = size;
  tensor.type_ = std::move(type);
  void* data = ::operator new(std::max<size_t>(tensor.size_, 1), kAlignment);
  std::memset(data, 0, tensor.size_);
  tensor.owner_ = std::shared_ptr<void>(data, [](void* p) { ::operator delete(p, kAlignment); });
  tensor.data_ = data;
  return tensor;
}

Tensor Tensor::View(TensorType type, std::string_view bytes, std::shared_ptr<const void> owner) {
  AG_CHECK(BytesFit(type, bytes));
  Tensor tensor;
  tensor.type_ = std::move(type);
  tensor.owner_ = std::move(owner);
  tensor.data_ = bytes.data();
  tensor.size_ = bytes.size();
  return tensor;
}

Tensor Tensor::FromBytes(TensorType type, std::string_view bytes) {
  AG_CHECK(BytesFit(type, bytes));
  Tensor tensor = Allocated(std::move(type), bytes.size());
  if (!bytes.empty()) std::memcpy(tensor.Mutable<char>().data(), bytes.data(), bytes.size());
  return tensor;
}

Tensor Tensor::FromFloats(Shape shape, std::span<const float> values) {
  return FromBytes({DType::kFloat32, std::move(shape)},
                   {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
}

Tensor Tensor::FromInts(Shape shape, std::span<const int64_t> values) {
  return FromBytes({DType::kInt64, std::move(shape)},
                   {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
}

Tensor Tensor::FromStrings(Shape shape, std::span<const std::string_view> values) {
  TensorType type{DType::kString, std::move(shape)};
  AG_CHECK(static_cast<int64_t>(values.size()) == type.NumElements());
  size_t size = OffsetBytes(type);
  for (const std::string_view value : values) size += value.size();
  Tensor tensor = Allocated(std::move(type), size);
  auto* offsets = tensor.Mutable<int64_t>().data();
  char* characters = tensor.Mutable<char>().data() + (values.size() + 1) * sizeof(int64_t);
  for (size_t i = 0; i < values.size(); ++i) {
    std::copy(values[i].begin(), values[i].end(), characters + offsets[i]);
    offsets[i + 1] = offsets[i] + static_cast<int64_t>(values[i].size());
  }
  return tensor;
}

Tensor Tensor::FromStrings(Shape shape, std::span<const std::string> values) {
  const std::vector<std::string_view> views(values.begin(), values.end());
  return FromStrings(std::move(shape), std::span(views));
}

std::vector<std::string_view> Tensor::Strings() const {
  AG_CHECK(type_.dtype == DType::kString);
  std::vector<std::string_view> values(static_cast<size_t>(type_.NumElements()));
  const std::string_view characters = bytes().substr(OffsetBytes(type_));
  for (size_t i = 0; i < values.size(); ++i) {
    const auto begin = static_cast<size_t>(OffsetAt(bytes(), i));
    values[i] = characters.substr(begin, static_cast<size_t>(OffsetAt(bytes(), i + 1)) - begin);
  }
  return values;
}

Tensor Tensor::FromDoubles(TensorType type, std::span<const double> values) {
  Tensor tensor = Zeros(std::move(type));
  AG_CHECK(static_cast<int64_t>(values.size()) == tensor.type_.NumElements());
  WithElement(tensor.type_.dtype, [&](auto element, auto, auto store) {
    auto* out = tensor.Mutable<decltype(element)>().data();
    for (size_t i = 0; i < values.size(); ++i) out[i] = store(values[i]);
  });
  return tensor;
}

void RoundTo(DType dtype, std::span<double> values) {
  if (dtype == DType::kFloat64) return;
  WithElement(dtype, [&](auto, auto load, auto store) {
    for (double& value : values) value = load(store(value));
  });
}

std::vector<double> Tensor::ToDoubles() const {
  std::vector<double> values(static_cast<size_t>(type_.NumElements()));
  WithElement(type_.dtype, [&](auto element, auto load, auto) {
    using Element = decltype(element);
    const char* in = static_cast<const char*>(data_);
    for (size_t i = 0; i < values.size(); ++i) {
      Element raw;  // Mapped blobs may have any address.
      std::memcpy(&raw, in + i * sizeof(raw), sizeof(raw));
      values[i] = load(raw);
    }
  });
  return values;
}

double Tensor::At(int64_t i) const {
  double value = 0;
  WithElement(type_.dtype, [&](auto element, auto load, auto) {
    std::memcpy(&element, static_cast<const char*>(data_) + i * sizeof(element), sizeof(element));
    value = load(element);
  });
  return value;
}

void Tensor::Put(int64_t i, double value) {
  WithElement(type_.dtype, [&](auto element, auto, auto store) {
    Mutable<decltype(element)>()[static_cast<size_t>(i)] = store(value);
  });
}

}  // namespace ag
