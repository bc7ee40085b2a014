// How a tensor's elements lie in memory at the edges of groups.
//
// Some layouts pad channels. What lies beyond a tensor's own channels is zero: whoever writes the
// tensor writes the padding too, in full, so that a reader may take whole blocks and multiply the
// padding by zeros. (Libraries make it by multiplying with zeros as well: of Inf and NaN beside it
// comes NaN.) Nobody counts it: sums and means are over the tensor's own elements.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "graph/types.h"

namespace ag {

// The numbers are part of stored bytes and never change.
enum class Layout : uint8_t {
  kPlain = 0,      // Row-major, dense. Every dtype and rank.
  kBlocked8 = 1,   // Rank 4 only: [N][C/8][H][W][8], channels padded with zeros to a multiple of 8.
  kBlocked16 = 2,  // Likewise with 16.
  kChannelsLast = 3,   // Rank 4 only: [N][H][W][C].
  kChannelsLast8 = 4,  // Likewise, channels padded with zeros to a multiple of 8.
};

inline constexpr size_t kLayoutCount = 5;

inline int64_t RoundUp(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

// "plain", "blocked8", "blocked16", "channels_last", "channels_last8".
std::string_view LayoutName(Layout layout);
StatusOr<Layout> ParseLayout(std::string_view name);
int64_t BlockOf(Layout layout);            // Channels that lie apart in blocks: 8, 16, else 1.
int64_t ChannelMultipleOf(Layout layout);  // What channels are padded to a multiple of; else 1.
bool IsChannelsLast(Layout layout);        // channels_last or channels_last8.

// Channels of a tensor of `shape` in memory, padding included. REQUIRES: rank 4 unless plain.
int64_t ChannelsInMemory(const Shape& shape, Layout layout);

// Strides, in elements, of each axis of a tensor of `shape` in `layout`, by axis of the shape. Over
// padded channels they leave gaps.
// REQUIRES: BlockOf(layout) == 1; rank 4 unless plain.
std::vector<int64_t> DenseStrides(const Shape& shape, Layout layout);
bool CanHave(const TensorType& type, Layout layout);         // Rank 4 and a float dtype, or plain.
int64_t LayoutBytes(const TensorType& type, Layout layout);  // Padding included.

// What a device keeps a tensor as when it computes in `precision` (Policy::precision): under "fp16"
// and "bf16" f32 elements are f16 and bf16 ones, everything else stays what it is.
DType StoredDType(DType dtype, std::string_view precision);
TensorType StoredType(const TensorType& type, std::string_view precision);

// True when the part of an axis [begin, begin+size) of a tensor of `type` in `layout` is one dense
// run of bytes that itself is a tensor of that layout (so that concat and split along it are
// views); *offset_bytes is where it begins. Padded channels must begin and end at whole blocks.
// REQUIRES: CanHave(type, layout), 0 <= axis < rank, the part lies within the axis.
bool IsViewAlongAxis(const TensorType& type, Layout layout, int64_t axis, int64_t begin,
                     int64_t size, int64_t* offset_bytes);

// True when a tensor of `type` lies byte for byte alike in both layouts: whole blocks of channels,
// and one pixel per channel, as after a global pooling, or both layouts with channels last. A
// reorder between them is a view.
bool HasSameBytes(const TensorType& type, Layout a, Layout b);

}  // namespace ag
