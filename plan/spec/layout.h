// The memory layouts of tensors between groups. Pure functions.
//
// Some layouts pad channels. The padding is always zero: the group that writes a tensor also writes
// all of its padding, so a reader may take whole blocks and multiply the padding by zeros.
// (Libraries also make the padding by a multiplication with zeros; next to an Inf or a NaN it
// becomes NaN.) The padding is not counted: sums and means are over the tensor's own elements.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/fields.h"
#include "graph/types.h"

namespace ag {

// The numbers are part of stored bytes and never change.
enum class Layout : uint8_t {
  kPlain = 0,      // Row-major, dense. Every dtype and rank.
  kBlocked8 = 1,   // Rank 4 only: [N][C/8][H][W][8], channels padded with zeros to a multiple of 8.
  kBlocked16 = 2,  // The same with 16.
  kChannelsLast = 3,   // Rank 4 only: [N][H][W][C].
  kChannelsLast8 = 4,  // The same, channels padded with zeros to a multiple of 8.
};

inline constexpr size_t kLayoutCount = 5;

void Fields(auto& io, Is<Layout> auto& layout) { io.Enum(layout, kLayoutCount, "layout"); }

inline int64_t RoundUp(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

// Names: "plain", "blocked8", "blocked16", "channels_last", "channels_last8".
std::string_view LayoutName(Layout layout);
StatusOr<Layout> ParseLayout(std::string_view name);
int64_t BlockOf(Layout layout);            // Channels per block: 8, 16, else 1.
int64_t ChannelMultipleOf(Layout layout);  // Channels are padded to a multiple of it; else 1.
bool IsChannelsLast(Layout layout);        // channels_last or channels_last8.
bool IsDense(Layout layout);               // plain or channels_last: no blocks, no padding.

// Returns the channels in memory of a tensor of `shape`, with padding. REQUIRES: rank 4 unless
// plain.
int64_t ChannelsInMemory(const Shape& shape, Layout layout);

// Returns the stride in elements of each axis of `shape` in `layout`. Padded channels leave gaps.
// REQUIRES: BlockOf(layout) == 1; rank 4 unless plain.
std::vector<int64_t> DenseStrides(const Shape& shape, Layout layout);
// True for plain, or for rank 4 and a float dtype other than f64.
bool CanHave(const TensorType& type, Layout layout);
int64_t LayoutBytes(const TensorType& type, Layout layout);  // With padding.

// Returns the type of a device's stored tensor when it computes in `precision` (Policy::precision):
// under "fp16" and "bf16", f32 becomes f16 and bf16; other types stay.
DType StoredDType(DType dtype, std::string_view precision);
TensorType StoredType(const TensorType& type, std::string_view precision);

// Returns true when the part [begin, begin+size) of an axis is one dense run of bytes and is itself
// a tensor of that layout; then concat and split along the axis are views. *offset_bytes is the
// start of the run. Padded channels must begin and end at whole blocks. REQUIRES: CanHave(type,
// layout), 0 <= axis < rank, the part is within the axis.
bool IsViewAlongAxis(const TensorType& type, Layout layout, int64_t axis, int64_t begin,
                     int64_t size, int64_t* offset_bytes);

// Returns true when a tensor of `type` has the same bytes in both layouts, so that a reorder
// between them is a view: whole blocks of channels and one pixel per channel (as after a global
// pooling), or both layouts with channels last.
bool HasSameBytes(const TensorType& type, Layout a, Layout b);

}  // namespace ag
