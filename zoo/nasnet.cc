#include <cmath>

#include "zoo/networks.h"

namespace ag {
namespace {

constexpr double kEpsilon = 1e-3;
// A cell's sums and maxima have about twice the variance of its inputs; this scale compensates for
// it.
constexpr double kCellScale = 0.65;

// The blocks of NASNet-A (figures 2 and 4 of the paper's appendix): `h` is the last cell's output,
// `p` the one before.
struct NasNet {
  ZooBuilder& b;

  Edge Norm(Edge x, double scale = 1) {
    return b.BatchNorm(x, {.epsilon = kEpsilon, .scale = scale});
  }

  // Depthwise, then pointwise convolution without batch norm between them.
  Edge Separable(Edge x, int64_t channels, int64_t kernel, int64_t stride, double scale) {
    const int64_t in = b.Channels(x);
    const Edge deep = b.Conv(x, {.channels = in,
                                 .kernel = {kernel, kernel},
                                 .stride = stride,
                                 .pad = {kernel / 2, kernel / 2},
                                 .group = in});
    return Norm(b.Conv(deep, {.channels = channels, .gain = 1}), scale);
  }
  // Two separable convolutions; the width changes at the second, or at the first in the stem.
  struct Branch {
    int64_t channels;
    int64_t kernel;
    int64_t stride = 1;
    bool stem = false;
  };
  Edge Twice(Edge x, const Branch& branch) {
    const int64_t inner = branch.stem ? branch.channels : b.Channels(x);
    const Edge first = Separable(b.Relu(x), inner, branch.kernel, branch.stride, 1);
    // Two branches are always added; the smaller scale keeps the sum as large as its parts.
    return Separable(b.Relu(first), branch.channels, branch.kernel, 1, 0.6);
  }
  Edge Average(Edge x, int64_t stride = 1) {
    return b.AveragePool(x, {.kernel = 3, .stride = stride, .pad = 1});
  }
  Edge Max(Edge x) { return b.MaxPool(x, {.kernel = 3, .stride = 2, .pad = 1}); }

  // Changes a cell's input to the cell's width.
  Edge Squeeze(Edge x, int64_t channels) { return Norm(b.Conv(b.Relu(x), {.channels = channels})); }
  // Does the same for an input of twice the size: two paths, one shifted by a pixel.
  Edge Halve(Edge x, int64_t channels) {
    x = b.Relu(x);
    const Shape shape = b.ShapeOf(x);
    const Edge padded = b.Op(OpKind::kPad, {x}, {{"pads", Ints{0, 0, 0, 0, 0, 0, 1, 1}}});
    const Edge shifted = b.Op(OpKind::kSlice, {padded},
                              {{"axes", Ints{2, 3}},
                               {"starts", Ints{1, 1}},
                               {"ends", Ints{shape[2] + 1, shape[3] + 1}},
                               {"steps", Ints{1, 1}}});
    std::vector<Edge> paths;
    for (const Edge path : {x, shifted}) {
      const Edge small = b.AveragePool(path, {.kernel = 1, .stride = 2});
      paths.push_back(b.Conv(small, {.channels = channels / 2}));
    }
    return Norm(b.Concat(paths), kCellScale);
  }
  Edge Fit(Edge p, Edge h, int64_t channels) {
    return b.ShapeOf(p)[2] == b.ShapeOf(h)[2] ? Squeeze(p, channels) : Halve(p, channels);
  }

  Edge Normal(Edge h, Edge p, int64_t channels) {
    const Edge left = Fit(p, h, channels);
    const Edge right = Squeeze(h, channels);
    const auto five = [&](Edge x) { return Twice(x, {.channels = channels, .kernel = 5}); };
    const auto three = [&](Edge x) { return Twice(x, {.channels = channels, .kernel = 3}); };
    const std::vector<Edge> parts = {left,
                                     b.Add(five(right), three(left)),
                                     b.Add(five(left), three(left)),
                                     b.Add(Average(right), left),
                                     b.Add(Average(left), Average(left)),
                                     b.Add(three(right), right)};
    return b.Concat(parts);
  }

  // The five blocks that the reduction cell and the two stem cells share.
  Edge ReduceBlocks(Edge near, Edge far, int64_t channels, bool stem) {
    const auto down = [&](Edge x, int64_t kernel) {
      return Twice(x, {.channels = channels,
                       .kernel = kernel,
                       .stride = 2,
                       .stem = stem && b.Channels(x) != channels});
    };
    const Edge first = b.Add(down(near, 5), down(far, 7));
    const Edge second = b.Add(Max(near), down(far, 7));
    const Edge third = b.Add(Average(near, 2), down(far, 5));
    const Edge fourth = b.Add(Average(first), second);
    const Edge fifth = b.Add(Twice(first, {.channels = channels, .kernel = 3}), Max(near));
    const std::vector<Edge> parts = {second, third, fourth, fifth};
    return b.Concat(parts);
  }
  Edge Reduction(Edge h, Edge p, int64_t channels) {
    const Edge far = Fit(p, h, channels);
    return ReduceBlocks(Squeeze(h, channels), far, channels, false);
  }
};

}  // namespace

void BuildNasNet(ZooBuilder& b, int64_t batch, const NasNetSize& size) {
  NasNet net{b};
  const Edge image = b.Input("input", {DType::kFloat32, {batch, 3, size.image, size.image}});
  const Edge start =
      net.Norm(b.Conv(image, {.channels = size.stem_filters, .kernel = {3, 3}, .stride = 2}));
  const int64_t quarter = size.filters / 4;
  Edge p = net.ReduceBlocks(net.Squeeze(start, quarter), start, quarter, true);
  const Edge far = net.Halve(start, size.filters / 2);
  Edge h = net.ReduceBlocks(net.Squeeze(p, size.filters / 2), far, size.filters / 2, false);
  int64_t filters = size.filters;
  for (int stage = 0; stage < 3; ++stage, filters *= 2) {
    if (stage > 0) {
      const Edge reduced = net.Reduction(h, p, filters);
      p = h;
      h = reduced;
    }
    for (int64_t cell = 0; cell < size.cells; ++cell) {
      const Edge next = net.Normal(h, p, filters);
      p = h;
      h = next;
    }
  }
  // Features still grow by about a quarter per cell.
  const double growth = std::pow(1.24, static_cast<double>(3 * size.cells));
  b.Output(b.Classifier(b.Relu(h), size.classes, growth), "logits");
}

}  // namespace ag
