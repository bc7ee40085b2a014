// The spatial axes of convolutions and pooling, and the places of an output position's window. Pure
// functions.
#pragma once

#include "graph/graph.h"

namespace ag::cuda {

struct WindowAxis {
  int64_t in = 1, out = 1;  // Sizes.
  int64_t kernel = 1, stride = 1, dilation = 1;
  int64_t pad_begin = 0, pad_end = 0;

  // Returns true when every window lies within the input.
  bool is_inside() const {
    return pad_begin == 0 && (out - 1) * stride + (kernel - 1) * dilation < in;
  }
};

// Returns one per spatial axis. `kernel` has the window's sizes.
std::vector<WindowAxis> WindowAxesOf(const Node& node, const Shape& in,
                                     std::span<const int64_t> kernel);

}  // namespace ag::cuda
