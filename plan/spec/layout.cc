#include "plan/spec/layout.h"

#include <array>
#include <vector>

namespace ag {
namespace {

constexpr std::array<std::string_view, kLayoutCount> kNames = {"plain", "blocked8", "blocked16",
                                                               "channels_last", "channels_last8"};

// Returns the axes in memory order, outermost first. The blocked axis is at the place of its block
// count; the inside of a block is no axis here.
std::vector<int64_t> AxesInMemory(const TensorType& type, Layout layout) {
  if (IsChannelsLast(layout)) return {0, 2, 3, 1};
  std::vector<int64_t> order;
  for (size_t axis = 0; axis < type.shape.size(); ++axis) {
    order.push_back(static_cast<int64_t>(axis));
  }
  return order;
}

// Returns the length of `axis` in memory, with channels padded to whole blocks.
int64_t MemoryLength(const TensorType& type, Layout layout, int64_t axis) {
  return axis == 1 ? ChannelsInMemory(type.shape, layout) : type.shape[axis];
}

}  // namespace

std::string_view LayoutName(Layout layout) { return kNames[static_cast<size_t>(layout)]; }

StatusOr<Layout> ParseLayout(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<Layout>(i);
  }
  return Err(StatusCode::kInvalidArgument,
             "layout: expected plain, blocked8, blocked16, channels_last or channels_last8, got "
             "'{}'",
             name);
}

int64_t BlockOf(Layout layout) {
  if (layout == Layout::kBlocked8) return 8;
  return layout == Layout::kBlocked16 ? 16 : 1;
}

int64_t ChannelMultipleOf(Layout layout) {
  return layout == Layout::kChannelsLast8 ? 8 : BlockOf(layout);
}

bool IsChannelsLast(Layout layout) {
  return layout == Layout::kChannelsLast || layout == Layout::kChannelsLast8;
}

bool IsDense(Layout layout) { return layout == Layout::kPlain || layout == Layout::kChannelsLast; }

int64_t ChannelsInMemory(const Shape& shape, Layout layout) {
  return RoundUp(shape[1], ChannelMultipleOf(layout));
}

std::vector<int64_t> DenseStrides(const Shape& shape, Layout layout) {
  const TensorType type{DType::kFloat32, shape};
  const std::vector<int64_t> order = AxesInMemory(type, layout);
  std::vector<int64_t> strides(shape.size(), 1);
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    strides[order[i]] = stride;
    stride *= MemoryLength(type, layout, order[i]);
  }
  return strides;
}

bool CanHave(const TensorType& type, Layout layout) {
  const bool has_kernels = IsFloat(type.dtype) && type.dtype != DType::kFloat64;
  return layout == Layout::kPlain || (type.shape.size() == 4 && has_kernels);
}

DType StoredDType(DType dtype, std::string_view precision) {
  if (dtype != DType::kFloat32) return dtype;
  if (precision == "fp16") return DType::kFloat16;
  return precision == "bf16" ? DType::kBFloat16 : dtype;
}

TensorType StoredType(const TensorType& type, std::string_view precision) {
  return {StoredDType(type.dtype, precision), type.shape};
}

int64_t LayoutBytes(const TensorType& type, Layout layout) {
  if (ChannelMultipleOf(layout) == 1 || type.shape.size() != 4) return type.Bytes();
  return SizeOf(type.dtype) * type.shape[0] * ChannelsInMemory(type.shape, layout) * type.shape[2] *
         type.shape[3];
}

bool IsViewAlongAxis(const TensorType& type, Layout layout, int64_t axis, int64_t begin,
                     int64_t size, int64_t* offset_bytes) {
  *offset_bytes = 0;
  if ((begin == 0 && size == type.shape[axis]) || type.NumElements() == 0) return true;
  const int64_t block = BlockOf(layout), multiple = ChannelMultipleOf(layout);
  if (axis == 1 && (begin % multiple != 0 || size % multiple != 0)) return false;
  int64_t outside = 1;  // Number of separate runs that form the part.
  int64_t inside = 1;   // Elements skipped by one step along the axis.
  bool seen = false;
  for (const int64_t other : AxesInMemory(type, layout)) {
    if (other == axis) {
      seen = true;
    } else if (other == 1 && axis > 1 && block > 1) {
      outside *= MemoryLength(type, layout, 1) / block;
      inside *= block;
    } else {
      (seen ? inside : outside) *= MemoryLength(type, layout, other);
    }
  }
  if (outside > 1) return false;
  *offset_bytes = begin * inside * SizeOf(type.dtype);
  return true;
}

bool HasSameBytes(const TensorType& type, Layout a, Layout b) {
  if (a == b) return true;
  if (!CanHave(type, a) || !CanHave(type, b)) return false;
  const int64_t channels = type.shape[1];
  if (channels % ChannelMultipleOf(a) != 0 || channels % ChannelMultipleOf(b) != 0) return false;
  return (IsChannelsLast(a) && IsChannelsLast(b)) || type.shape[2] * type.shape[3] == 1;
}

}  // namespace ag
