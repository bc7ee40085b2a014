#include "graph/testing/random_graph.h"

#include "base/random.h"

namespace ag {
namespace {

class Grower {
 public:
  Grower(uint64_t seed, MemoryWeights* weights, const RandomGraphOptions& options)
      : random_(seed), weights_(weights), options_(options) {}

  Graph Grow() {
    const int64_t channels = random_.Between(1, 4), size = random_.Between(1, 6);
    for (int i = 0; i < 2; ++i) {
      const std::string name = fmt::format("x{}", i);
      edges_.push_back(builder_.Input(name, {DType::kFloat32, {1, channels, size, size}}));
    }
    for (int i = 0; i < options_.nodes; ++i) Step();
    builder_.Output(edges_.back(), "last");
    builder_.Output(Pick(), "any");
    StatusOr<Graph> graph = builder_.Build();
    AG_CHECK(graph.ok());
    return *std::move(graph);
  }

 private:
  Edge Pick() { return edges_[random_.Below(edges_.size())]; }
  const Shape& ShapeOf(Edge e) const { return builder_.type(e).shape; }
  int64_t Axis(Edge e) { return static_cast<int64_t>(random_.Below(ShapeOf(e).size())); }

  Edge NewConstant(Shape shape) {
    const Tensor tensor = SyntheticTensor({DType::kFloat32, std::move(shape)}, random_.Below(3));
    const Digest digest = weights_ == nullptr ? tensor.Name() : weights_->Put(tensor);
    return builder_.Constant(tensor.type(), digest, tensor.bytes());
  }

  // Keeps a node that was added; an ill-typed one was not, and the next step tries another.
  void Keep(const StatusOr<NodeId>& id) {
    if (!id.ok()) return;
    const auto outputs = static_cast<int32_t>(builder_.node(*id).outputs.size());
    for (int32_t i = 0; i < outputs; ++i) edges_.push_back({*id, i});
  }

  void Step() {
    const Edge x = Pick();
    switch (random_.Below(options_.opaque ? 12 : 11)) {
      case 0:
        return Unary(x);
      case 1:
        return Binary(x, Pick());
      case 2:
        return Binary(x, NewConstant(ShapeOf(x)));
      case 3:
        return Conv(x);
      case 4:
        return Transpose(x);
      case 5:
        return Split(x);
      case 6:
        return Concat(x, Pick());
      case 7:
        return Reshape(x);
      case 8:
        return Slice(x);
      case 9:
        edges_.push_back(NewConstant(ShapeOf(x)));
        return;
      case 10:
        return Reduce(x);
      default:
        return Opaque(x, Pick());
    }
  }

  void Unary(Edge x) {
    static constexpr OpKind kOps[] = {OpKind::kRelu, OpKind::kTanh, OpKind::kSigmoid, OpKind::kNeg,
                                      OpKind::kAbs};
    Keep(builder_.Add(kOps[random_.Below(std::size(kOps))], std::span(&x, 1)));
  }

  void Binary(Edge x, Edge y) {
    static constexpr OpKind kOps[] = {OpKind::kAdd, OpKind::kSub, OpKind::kMul, OpKind::kMax};
    const Edge operands[] = {x, y};
    Keep(builder_.Add(kOps[random_.Below(std::size(kOps))], operands));
  }

  void Conv(Edge x) {
    if (ShapeOf(x).size() != 4) return;
    const int64_t channels = random_.Between(1, 4), kernel = random_.Between(1, 2) * 2 - 1;
    const int64_t pad = kernel / 2;
    const Edge operands[] = {x, NewConstant({channels, ShapeOf(x)[1], kernel, kernel}),
                             NewConstant({channels})};
    Keep(builder_.Add(
        OpKind::kConv, operands,
        {{"strides", Ints{1, 1}}, {"pads", Ints{pad, pad, pad, pad}}, {"dilations", Ints{1, 1}}}));
  }

  void Transpose(Edge x) {
    Ints perm;
    for (size_t i = 0; i < ShapeOf(x).size(); ++i) perm.push_back(static_cast<int64_t>(i));
    if (perm.size() > 1) std::swap(perm[random_.Below(perm.size())], perm.back());
    Keep(builder_.Add(OpKind::kTranspose, std::span(&x, 1), {{"perm", perm}}));
  }

  void Split(Edge x) {
    const int64_t axis = Axis(x), size = ShapeOf(x)[static_cast<size_t>(axis)];
    const int64_t first = random_.Between(0, size);
    const Ints sizes = first == 0 ? Ints{size} : Ints{first, size - first};
    Keep(builder_.Add(OpKind::kSplit, std::span(&x, 1), {{"axis", axis}, {"sizes", sizes}}));
  }

  void Concat(Edge x, Edge y) {
    const Edge operands[] = {x, y};
    const size_t count = random_.Below(4) == 0 ? 1 : 2;
    Keep(builder_.Add(OpKind::kConcat, std::span(operands, count), {{"axis", Axis(x)}}));
  }

  void Reshape(Edge x) {
    const Shape& shape = ShapeOf(x);
    Ints sizes(shape.begin(), shape.end());
    if (sizes.size() > 2 && random_.Below(2) == 0) {
      sizes[1] *= sizes[0];
      sizes.erase(sizes.begin());
    } else {
      sizes.insert(sizes.begin(), 1);
    }
    if (sizes.size() < 6)
      Keep(builder_.Add(OpKind::kReshape, std::span(&x, 1), {{"shape", sizes}}));
  }

  void Slice(Edge x) {
    const int64_t step = random_.Below(2) == 0 ? 1 : -1;
    const int64_t end = step > 0 ? 1 << 20 : -(1 << 20);
    Keep(builder_.Add(OpKind::kSlice, std::span(&x, 1),
                      {{"axes", Ints{Axis(x)}},
                       {"starts", Ints{step > 0 ? 0 : -1}},
                       {"ends", Ints{end}},
                       {"steps", Ints{step}}}));
  }

  void Reduce(Edge x) {
    Keep(builder_.Add(OpKind::kReduceMean, std::span(&x, 1), {{"axes", Ints{Axis(x)}}}));
  }

  void Opaque(Edge x, Edge y) {
    const Edge operands[] = {x, y};
    const TensorType types[] = {builder_.type(x), builder_.type(y)};
    Keep(builder_.AddOpaque(operands, {{"domain", std::string("test")}}, types));
  }

  Random random_;
  MemoryWeights* weights_;
  RandomGraphOptions options_;
  GraphBuilder builder_;
  std::vector<Edge> edges_;
};

}  // namespace

Graph RandomGraph(uint64_t seed, MemoryWeights* weights, const RandomGraphOptions& options) {
  return Grower(seed, weights, options).Grow();
}

}  // namespace ag
