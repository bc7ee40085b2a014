#include "zoo/networks.h"

namespace ag {
namespace {

using Kernel = std::array<int64_t, 2>;

struct Inception {
  ZooBuilder& b;

  // Convolution, batch norm, ReLU; `same` keeps the size.
  Edge Unit(Edge x, int64_t channels, Kernel kernel, int64_t stride = 1, bool same = true) {
    const Kernel pad = same ? Kernel{kernel[0] / 2, kernel[1] / 2} : Kernel{0, 0};
    const Edge y =
        b.Conv(x, {.channels = channels, .kernel = kernel, .stride = stride, .pad = pad});
    return b.Relu(b.BatchNorm(y, {.epsilon = 1e-3}));
  }
  Edge Shrink(Edge x, int64_t channels) { return Unit(x, channels, {3, 3}, 2, false); }
  Edge Pooled(Edge x, int64_t channels) {
    return Unit(b.AveragePool(x, {.kernel = 3, .pad = 1, .count_pad = true}), channels, {1, 1});
  }
  Edge Concat(std::vector<Edge> parts) { return b.Concat(parts); }

  Edge A(Edge x, int64_t pool) {
    const Edge one = Unit(x, 64, {1, 1});
    const Edge five = Unit(Unit(x, 48, {1, 1}), 64, {5, 5});
    const Edge three = Unit(Unit(Unit(x, 64, {1, 1}), 96, {3, 3}), 96, {3, 3});
    return Concat({one, five, three, Pooled(x, pool)});
  }
  Edge B(Edge x) {
    const Edge three = Shrink(x, 384);
    const Edge twice = Shrink(Unit(Unit(x, 64, {1, 1}), 96, {3, 3}), 96);
    return Concat({three, twice, b.MaxPool(x, {.kernel = 3, .stride = 2})});
  }
  Edge C(Edge x, int64_t width) {
    const Edge one = Unit(x, 192, {1, 1});
    const Edge seven = Unit(Unit(Unit(x, width, {1, 1}), width, {1, 7}), 192, {7, 1});
    Edge twice = Unit(Unit(Unit(x, width, {1, 1}), width, {7, 1}), width, {1, 7});
    twice = Unit(Unit(twice, width, {7, 1}), 192, {1, 7});
    return Concat({one, seven, twice, Pooled(x, 192)});
  }
  Edge D(Edge x) {
    const Edge three = Shrink(Unit(x, 192, {1, 1}), 320);
    const Edge seven = Shrink(Unit(Unit(Unit(x, 192, {1, 1}), 192, {1, 7}), 192, {7, 1}), 192);
    return Concat({three, seven, b.MaxPool(x, {.kernel = 3, .stride = 2})});
  }
  Edge Fork(Edge x, int64_t channels) {
    return Concat({Unit(x, channels, {1, 3}), Unit(x, channels, {3, 1})});
  }
  Edge E(Edge x) {
    const Edge one = Unit(x, 320, {1, 1});
    const Edge three = Fork(Unit(x, 384, {1, 1}), 384);
    const Edge twice = Fork(Unit(Unit(x, 448, {1, 1}), 384, {3, 3}), 384);
    return Concat({one, three, twice, Pooled(x, 192)});
  }
};

}  // namespace

void BuildInceptionV3(ZooBuilder& b, int64_t batch) {
  Inception net{b};
  Edge x = b.Input("input", {DType::kFloat32, {batch, 3, 299, 299}});
  x = net.Unit(net.Unit(net.Shrink(x, 32), 32, {3, 3}, 1, false), 64, {3, 3});
  x = b.MaxPool(x, {.kernel = 3, .stride = 2});
  x = net.Unit(net.Unit(x, 80, {1, 1}), 192, {3, 3}, 1, false);
  x = b.MaxPool(x, {.kernel = 3, .stride = 2});
  for (const int64_t pool : {32, 64, 64}) x = net.A(x, pool);
  x = net.B(x);
  for (const int64_t width : {128, 160, 160, 192}) x = net.C(x, width);
  x = net.D(x);
  x = net.E(net.E(x));
  b.Output(b.Classifier(x, 1000), "logits");
}

void BuildTinyInception(ZooBuilder& b, int64_t batch) {
  Inception net{b};
  Edge x = b.Input("input", {DType::kFloat32, {batch, 3, 15, 15}});
  x = net.Shrink(x, 8);
  const Edge one = net.Unit(x, 8, {1, 1});
  const Edge three = net.Unit(net.Unit(x, 8, {1, 1}), 8, {3, 3});
  const Edge wide = net.Unit(net.Unit(net.Unit(x, 8, {1, 1}), 8, {1, 3}), 8, {3, 1});
  x = net.Concat({one, three, wide, net.Pooled(x, 8)});
  x = net.Concat({net.Shrink(x, 8), b.MaxPool(x, {.kernel = 3, .stride = 2})});
  b.Output(b.Classifier(net.Fork(x, 8), 10), "logits");
}

}  // namespace ag
