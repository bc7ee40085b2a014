#include <cmath>

#include "zoo/networks.h"

namespace ag {
namespace {

struct Bert {
  ZooBuilder& b;
  int64_t batch;
  const BertSize& size;

  // Layer normalization over the last axis, as exporters write it below opset 17.
  Edge LayerNorm(Edge x) {
    const auto mean = [&](Edge value) {
      return b.Op(OpKind::kReduceMean, {value}, {{"axes", Ints{2}}, {"keepdims", int64_t{1}}});
    };
    const Edge centred = b.Op(OpKind::kSub, {x, mean(x)});
    const Edge variance = mean(b.Op(OpKind::kPow, {centred, b.Scalar(2)}));
    const Edge deviation = b.Op(OpKind::kSqrt, {b.Add(variance, b.Scalar(1e-12f))});
    const Edge normal = b.Op(OpKind::kDiv, {centred, deviation});
    return b.Add(b.Mul(normal, b.Random({size.hidden}, 0.1, 1)), b.Random({size.hidden}, 0.1));
  }

  Edge Gelu(Edge x) {
    const Edge erf = b.Op(OpKind::kErf, {b.Op(OpKind::kDiv, {x, b.Scalar(std::sqrt(2.0f))})});
    return b.Mul(b.Mul(x, b.Add(erf, b.Scalar(1))), b.Scalar(0.5f));
  }

  Edge Embed(Edge ids, Edge types) {
    const auto table = [&](int64_t rows) { return b.Random({rows, size.hidden}, 0.05); };
    std::vector<int64_t> positions(size.sequence);
    for (int64_t i = 0; i < size.sequence; ++i) positions[i] = i;
    const Edge word = b.Op(OpKind::kGather, {table(size.vocabulary), ids});
    const Edge type = b.Op(OpKind::kGather, {table(2), types});
    const Edge position =
        b.Op(OpKind::kGather, {table(size.positions), b.Ints({1, size.sequence}, positions)});
    return LayerNorm(b.Add(b.Add(word, type), position));
  }

  // Returns 0 where the mask is 1, a large negative number elsewhere: [batch,1,1,sequence].
  Edge Penalty(Edge mask) {
    const Edge wide = b.Reshape(mask, {batch, 1, 1, size.sequence});
    const Edge kept = b.Op(OpKind::kCast, {wide}, {{"to", int64_t{1}}});
    return b.Mul(b.Op(OpKind::kSub, {b.Scalar(1), kept}), b.Scalar(-10000));
  }

  Edge Heads(Edge x, std::vector<int64_t> perm) {
    const Edge dense = b.Dense(x, size.hidden);
    const Edge split =
        b.Reshape(dense, {batch, size.sequence, size.heads, size.hidden / size.heads});
    return b.Transpose(split, std::move(perm));
  }

  Edge Attention(Edge x, Edge penalty) {
    const Edge query = Heads(x, {0, 2, 1, 3});
    const Edge key = Heads(x, {0, 2, 3, 1});
    const Edge value = Heads(x, {0, 2, 1, 3});
    const int64_t width = size.hidden / size.heads;
    const Edge scores =
        b.Op(OpKind::kDiv, {b.MatMul(query, key), b.Scalar(std::sqrt(static_cast<float>(width)))});
    const Edge weights = b.Op(OpKind::kSoftmax, {b.Add(scores, penalty)}, {{"axis", int64_t{3}}});
    const Edge joined = b.Transpose(b.MatMul(weights, value), {0, 2, 1, 3});
    return b.Dense(b.Reshape(joined, {batch, size.sequence, size.hidden}), size.hidden);
  }

  Edge Layer(Edge x, Edge penalty) {
    x = LayerNorm(b.Add(Attention(x, penalty), x));
    const Edge inner = Gelu(b.Dense(x, 4 * size.hidden, 2));
    return LayerNorm(b.Add(b.Dense(inner, size.hidden), x));
  }
};

}  // namespace

void BuildBert(ZooBuilder& b, int64_t batch, const BertSize& size) {
  Bert net{b, batch, size};
  const TensorType tokens{DType::kInt64, {batch, size.sequence}};
  const Edge ids = b.Input("input_ids", tokens);
  const Edge mask = b.Input("attention_mask", tokens);
  const Edge types = b.Input("token_type_ids", tokens);
  const Edge penalty = net.Penalty(mask);
  Edge x = net.Embed(ids, types);
  for (int64_t layer = 0; layer < size.layers; ++layer) x = net.Layer(x, penalty);
  const int64_t first = 0;
  const Edge token = b.Op(OpKind::kGather, {x, b.Ints({}, {&first, 1})}, {{"axis", int64_t{1}}});
  b.Output(x, "last_hidden_state");
  b.Output(b.Op(OpKind::kTanh, {b.Dense(token, size.hidden)}), "pooler_output");
}

}  // namespace ag
