#include <cmath>

#include "zoo/networks.h"

namespace ag {
namespace {

// Layers on [batch, tokens, hidden].
struct Vit {
  ZooBuilder& b;
  int64_t batch;
  int64_t tokens;
  const VitSize& size;

  Edge Norm(Edge x) {
    const Edge scale = b.Random({size.hidden}, 0.1, 1), bias = b.Random({size.hidden}, 0.1);
    return b.Op(OpKind::kLayerNorm, {x, scale, bias}, {{"axis", int64_t{2}}, {"epsilon", 1e-6}});
  }

  Edge ErfGelu(Edge x) {
    const Edge erf = b.Op(OpKind::kErf, {b.Op(OpKind::kDiv, {x, b.Scalar(std::sqrt(2.0f))})});
    return b.Mul(b.Mul(x, b.Add(erf, b.Scalar(1))), b.Scalar(0.5f));
  }

  Edge Head(Edge x, std::vector<int64_t> perm) {
    const int64_t width = size.hidden / size.heads;
    return b.Transpose(b.Reshape(b.Dense(x, size.hidden), {batch, tokens, size.heads, width}),
                       std::move(perm));
  }

  Edge SelfAttention(Edge x) {
    const int64_t width = size.hidden / size.heads;
    const Edge query = Head(x, {0, 2, 1, 3}), key = Head(x, {0, 2, 3, 1});
    const Edge value = Head(x, {0, 2, 1, 3});
    const Edge scores =
        b.Op(OpKind::kDiv, {b.MatMul(query, key), b.Scalar(std::sqrt(static_cast<float>(width)))});
    const Edge weights = b.Op(OpKind::kSoftmax, {scores}, {{"axis", int64_t{3}}});
    const Edge joined = b.Transpose(b.MatMul(weights, value), {0, 2, 1, 3});
    return b.Dense(b.Reshape(joined, {batch, tokens, size.hidden}), size.hidden, 0.3);
  }

  Edge Block(Edge x) {
    x = b.Add(x, SelfAttention(Norm(x)));
    return b.Add(x, b.Dense(ErfGelu(b.Dense(Norm(x), 4 * size.hidden, 2)), size.hidden, 0.3));
  }
};

}  // namespace

void BuildVit(ZooBuilder& b, int64_t batch, const VitSize& size) {
  const int64_t side = size.image / size.patch, patches = side * side;
  Vit net{b, batch, patches + 1, size};
  Edge x = b.Input("input", {DType::kFloat32, {batch, 3, size.image, size.image}});
  x = b.Conv(x, {.channels = size.hidden,
                 .kernel = {size.patch, size.patch},
                 .stride = size.patch,
                 .bias = true});
  x = b.Transpose(b.Reshape(x, {batch, size.hidden, patches}), {0, 2, 1});
  const Edge token = b.Op(OpKind::kExpand, {b.Random({1, 1, size.hidden}, 0.5)},
                          {{"shape", Ints{batch, 1, size.hidden}}});
  x = b.Concat(std::array{token, x});
  x = b.Add(x, b.Random({1, patches + 1, size.hidden}, 0.1));
  for (int64_t layer = 0; layer < size.layers; ++layer) x = net.Block(x);
  const int64_t first = 0;
  x = b.Op(OpKind::kGather, {net.Norm(x), b.Ints({}, {&first, 1})}, {{"axis", int64_t{1}}});
  b.Output(b.Dense(x, size.classes), "logits");
}

}  // namespace ag
