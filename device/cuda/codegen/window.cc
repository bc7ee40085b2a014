#include "device/cuda/codegen/window.h"

namespace ag::cuda {

std::vector<WindowAxis> WindowAxesOf(const Node& node, const Shape& in,
                                     std::span<const int64_t> kernel) {
  const Ints& pads = node.IntList("pads");
  std::vector<WindowAxis> axes;
  for (size_t i = 0; i < kernel.size(); ++i) {
    axes.push_back({.in = in[i + 2],
                    .out = node.outputs[0].shape[i + 2],
                    .kernel = kernel[i],
                    .stride = node.IntList("strides")[i],
                    .dilation = node.IntList("dilations")[i],
                    .pad_begin = pads[i],
                    .pad_end = pads[kernel.size() + i]});
  }
  return axes;
}

}  // namespace ag::cuda
