#include "device/cpu/image_places.h"

#include <algorithm>

namespace ag::cpu {

Side PlainSide(int64_t rows, int64_t channels) {
  return {.width = rows, .pixel = channels, .block = channels, .channels = channels};
}

Side ImageSide(const Shape& shape, Layout layout) {
  Side side{.height = shape[2], .width = shape[3], .channels = ChannelsInMemory(shape, layout)};
  side.block = layout == Layout::kChannelsLast ? side.channels : BlockOf(layout);
  side.image = side.channels * shape[2] * shape[3];
  side.pixel = side.block;
  side.line = side.block * shape[3];
  side.plane = side.block * shape[2] * shape[3];
  return side;
}

Axis AxisOf(const Graph& graph, const Node& conv, size_t i) {
  return {.taps = graph.type(conv.inputs[1]).shape[2 + i],
          .stride = conv.IntList("strides")[i],
          .dilation = conv.IntList("dilations")[i],
          .pad = conv.IntList("pads")[i]};
}

void CopyVectors(const float* from, int64_t from_step, int64_t used, int64_t lanes, float* to,
                 int64_t to_step) {
  constexpr int64_t kMost = 16;  // Of a size that is known, a copy is no call.
  if (from_step == to_step) {
    std::copy_n(from, used, to);
    return;
  }
  for (int64_t at = 0; at < used; at += lanes, from += from_step, to += to_step) {
    const int64_t n = std::min(lanes, used - at);
    if (n == kMost) {
      std::copy_n(from, kMost, to);
    } else {
      std::copy_n(from, n, to);
    }
  }
}

}  // namespace ag::cpu
