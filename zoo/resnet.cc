#include "zoo/networks.h"

namespace ag {
namespace {

struct Bottleneck {
  int64_t width;     // Of the two inner convolutions.
  int64_t channels;  // Of the result.
  int64_t stride;
  int64_t group;
};

Edge Block(ZooBuilder& b, Edge x, const Bottleneck& size) {
  Edge y = b.Relu(b.BatchNorm(b.Conv(x, {.channels = size.width})));
  y = b.Conv(y, {.channels = size.width,
                 .kernel = {3, 3},
                 .stride = size.stride,
                 .pad = {1, 1},
                 .group = size.group});
  y = b.Relu(b.BatchNorm(y));
  // A small last scale keeps the sum along the residual chain from growing, as in trained networks.
  y = b.BatchNorm(b.Conv(y, {.channels = size.channels}), {.scale = 0.3});
  if (size.channels != b.Channels(x) || size.stride != 1) {
    x = b.BatchNorm(b.Conv(x, {.channels = size.channels, .stride = size.stride, .gain = 1}));
  }
  return b.Relu(b.Add(y, x));
}

}  // namespace

void BuildResNet(ZooBuilder& b, int64_t batch, const ResNetSize& size) {
  Edge x = b.Input("input", {DType::kFloat32, {batch, 3, size.image, size.image}});
  x = b.Conv(x, {.channels = size.width, .kernel = {7, 7}, .stride = 2, .pad = {3, 3}});
  x = b.MaxPool(b.Relu(b.BatchNorm(x)), {.kernel = 3, .stride = 2, .pad = 1});
  int64_t planes = size.width;
  for (size_t stage = 0; stage < size.blocks.size(); ++stage, planes *= 2) {
    for (int64_t block = 0; block < size.blocks[stage]; ++block) {
      x = Block(b, x,
                {.width = planes * size.width_per_group / 64 * size.group,
                 .channels = planes * 4,
                 .stride = stage > 0 && block == 0 ? 2 : 1,
                 .group = size.group});
    }
  }
  b.Output(b.Classifier(x, size.classes), "logits");
}

}  // namespace ag
