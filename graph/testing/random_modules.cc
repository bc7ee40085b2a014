#include "graph/testing/random_modules.h"

#include <algorithm>

#include "base/random.h"
#include "graph/weights.h"

namespace ag {
namespace {

class ModuleGrower {
 public:
  explicit ModuleGrower(uint64_t seed) : random_(seed), is_image_(random_.Below(2) == 0) {}

  Graph Grow(int operators) {
    Offer(builder_.Input("x0", TypeOf(Width())));
    if (random_.Below(3) == 0) Offer(builder_.Input("x1", TypeOf(Width())));
    while (added_ < operators) Step();
    int outputs = 0;
    for (const Edge& edge : unused_) builder_.Output(edge, fmt::format("y{}", outputs++));
    StatusOr<Graph> graph = builder_.Build();
    AG_CHECK(graph.ok());
    return *std::move(graph);
  }

 private:
  int64_t Width() { return 32 * random_.Between(1, 3); }
  TensorType TypeOf(int64_t width) const {
    return {DType::kFloat32, is_image_ ? Shape{1, width, 28, 28} : Shape{128, width}};
  }
  const Shape& ShapeOf(Edge edge) const { return builder_.type(edge).shape; }
  int64_t WidthOf(Edge edge) const { return ShapeOf(edge)[1]; }

  void Offer(Edge edge) {
    edges_.push_back(edge);
    unused_.push_back(edge);
  }

  // Half of the operators use what nothing uses yet; the others make branches.
  Edge Pick() {
    const std::vector<Edge>& from = random_.Below(2) == 0 ? unused_ : edges_;
    return from[random_.Below(from.size())];
  }

  // Returns a tensor of the same shape, mostly another one.
  Edge PickLike(Edge edge) {
    std::vector<Edge> alike;
    for (const Edge& other : edges_) {
      if (other != edge && ShapeOf(other) == ShapeOf(edge)) alike.push_back(other);
    }
    return alike.empty() ? edge : alike[random_.Below(alike.size())];
  }

  Edge NewConstant(Shape shape) {
    const Tensor tensor = SyntheticTensor({DType::kFloat32, std::move(shape)}, ++constants_);
    return builder_.Constant(tensor.type(), tensor.Name(), tensor.bytes());
  }

  void Keep(OpKind op, std::vector<Edge> operands, Attributes attributes = {}) {
    const NodeId id = *builder_.Add(op, operands, std::move(attributes));
    ++added_;
    std::erase_if(unused_, [&](Edge edge) { return std::ranges::count(operands, edge) > 0; });
    const auto outputs = static_cast<int32_t>(builder_.node(id).outputs.size());
    for (int32_t i = 0; i < outputs; ++i) Offer({id, i});
  }

  void Step() {
    const Edge x = Pick();
    switch (random_.Below(8)) {
      case 0:
      case 1:
      case 2:
        return is_image_ ? Conv(x) : Keep(OpKind::kMatMul, {x, NewConstant({WidthOf(x), Width()})});
      case 3:
        return Keep(random_.Below(3) == 0 ? OpKind::kTanh : OpKind::kRelu, {x});
      case 4:
        return Keep(random_.Below(3) == 0 ? OpKind::kMul : OpKind::kAdd, {x, PickLike(x)});
      case 5:
        return Keep(random_.Below(2) == 0 ? OpKind::kMul : OpKind::kAdd,
                    {x, NewConstant(is_image_ ? Shape{1, WidthOf(x), 1, 1} : Shape{WidthOf(x)})});
      case 6:
        return Concat(x, Pick());
      default:
        return Split(x);
    }
  }

  void Conv(Edge x) {
    const int64_t channels = Width(), kernel = random_.Between(1, 2) * 2 - 1, pad = kernel / 2;
    Keep(OpKind::kConv,
         {x, NewConstant({channels, WidthOf(x), kernel, kernel}), NewConstant({channels})},
         {{"strides", Ints{1, 1}}, {"pads", Ints{pad, pad, pad, pad}}, {"dilations", Ints{1, 1}}});
  }

  void Concat(Edge x, Edge y) {
    if (WidthOf(x) + WidthOf(y) > 256) return;
    Keep(OpKind::kConcat, {x, y}, {{"axis", int64_t{1}}});
  }

  void Split(Edge x) {
    const int64_t width = WidthOf(x);
    if (width < 64) return;
    const int64_t first = random_.Below(2) == 0 ? width / 2 : 32;
    Keep(OpKind::kSplit, {x}, {{"axis", int64_t{1}}, {"sizes", Ints{first, width - first}}});
  }

  Random random_;
  const bool is_image_;
  GraphBuilder builder_;
  std::vector<Edge> edges_, unused_;
  int added_ = 0;
  int constants_ = 0;
};

}  // namespace

Graph RandomModules(uint64_t seed, int operators) { return ModuleGrower(seed).Grow(operators); }

}  // namespace ag
