#include "zoo/networks.h"

namespace ag {
namespace {

Edge Unit(ZooBuilder& b, Edge x, ZooBuilder::ConvOptions options) {
  options.bias = true;
  return b.Relu(b.Conv(x, options));
}

Edge Fire(ZooBuilder& b, Edge x, int64_t squeeze, int64_t expand) {
  x = Unit(b, x, {.channels = squeeze});
  const std::vector<Edge> parts = {
      Unit(b, x, {.channels = expand}),
      Unit(b, x, {.channels = expand, .kernel = {3, 3}, .pad = {1, 1}})};
  return b.Concat(parts);
}

}  // namespace

void BuildSqueezeNet(ZooBuilder& b, int64_t batch) {
  const ZooBuilder::PoolOptions pool{.kernel = 3, .stride = 2, .ceil = true};
  Edge x = b.Input("input", {DType::kFloat32, {batch, 3, 224, 224}});
  x = b.MaxPool(Unit(b, x, {.channels = 64, .kernel = {3, 3}, .stride = 2}), pool);
  x = b.MaxPool(Fire(b, Fire(b, x, 16, 64), 16, 64), pool);
  x = b.MaxPool(Fire(b, Fire(b, x, 32, 128), 32, 128), pool);
  x = Fire(b, Fire(b, x, 48, 192), 48, 192);
  x = Fire(b, Fire(b, x, 64, 256), 64, 256);
  x = b.GlobalAveragePool(Unit(b, x, {.channels = 1000, .gain = 40}));
  b.Output(b.Reshape(x, {batch, 1000}), "logits");
}

void BuildTinyCnn(ZooBuilder& b, int64_t batch) {
  Edge x = b.Input("input", {DType::kFloat32, {batch, 3, 16, 16}});
  x = b.Relu(b.BatchNorm(b.Conv(x, {.channels = 8, .kernel = {3, 3}, .pad = {1, 1}})));
  x = b.MaxPool(x, {.kernel = 2, .stride = 2});
  x = Fire(b, x, 4, 8);
  b.Output(b.Classifier(x, 10), "logits");
}

}  // namespace ag
