#include "device/cuda/dense_problem.h"

#include <algorithm>

#include "plan/spec/node_layouts.h"

namespace ag::cuda {
namespace {

// An axis of the batch: its size in the result, and the strides of A and B along it.
struct BatchAxis {
  int64_t size = 1;
  int64_t a = 0, b = 0;
};

// Returns the batch axes from outside, without those of size 1.
std::vector<BatchAxis> BatchAxes(const Shape& a, const Shape& b, const Shape& result) {
  std::vector<BatchAxis> axes;
  int64_t a_stride = a[a.size() - 1] * a[a.size() - 2];
  int64_t b_stride = b[b.size() - 1] * b[b.size() - 2];
  for (size_t from_inside = 2; from_inside < result.size(); ++from_inside) {
    const auto size_of = [&](const Shape& shape) {
      return from_inside < shape.size() ? shape[shape.size() - 1 - from_inside] : 1;
    };
    const int64_t size = result[result.size() - 1 - from_inside];
    if (size != 1) {
      axes.push_back({size, size_of(a) == 1 ? 0 : a_stride, size_of(b) == 1 ? 0 : b_stride});
    }
    a_stride *= size_of(a);
    b_stride *= size_of(b);
  }
  std::ranges::reverse(axes);
  return axes;
}

// Joins neighbouring axes that have one stride in both operands.
std::vector<BatchAxis> Joined(const std::vector<BatchAxis>& axes) {
  std::vector<BatchAxis> joined;
  for (const BatchAxis& axis : axes) {
    if (!joined.empty() && joined.back().a == axis.a * axis.size &&
        joined.back().b == axis.b * axis.size) {
      joined.back() = {joined.back().size * axis.size, axis.a, axis.b};
    } else {
      joined.push_back(axis);
    }
  }
  return joined;
}

// Fails unless every tensor of the result's size has the result's padding and padding stays zero.
Status CheckPadding(const GroupContext& context, const DenseProblem& p) {
  const Port& result = context.group.outputs[0];
  const bool is_padded = p.n != p.result[1];
  if (is_padded && p.tail.activation != nullptr && !GivesZeroForZero(*p.tail.activation)) {
    return Err(StatusCode::kUnimplemented, "Conv: {} makes no zeros of padding",
               Info(p.tail.activation->op).name);
  }
  const int port = p.tail.addend ? context.InputOf(*p.tail.addend) : -1;
  if (port < 0 || ChannelsInMemory(p.result, context.group.inputs[port].layout) == p.n) {
    return OkStatus();
  }
  return Err(StatusCode::kUnimplemented, "Conv: an addend in layout {}, the result in {}",
             LayoutName(context.group.inputs[port].layout), LayoutName(result.layout));
}

Status CheckOperands(const GroupContext& context, DType stored, Layout layout) {
  const Node& node = context.node(0);
  const std::string_view name = Info(node.op).name;
  std::vector<Port> ports = context.group.inputs;
  ports.push_back(context.group.outputs[0]);
  for (const Port& port : ports) {
    // (A vector of channels has the same bytes in every layout.)
    const bool is_last = IsChannelsLast(layout) && IsChannelsLast(port.layout);
    if (port.layout != layout && !is_last &&
        !HasSameBytes(context.graph.type(port.edge), port.layout, layout)) {
      return Err(StatusCode::kUnimplemented, "{}: a product of tensors in layout {}", name,
                 LayoutName(port.layout));
    }
  }
  if (stored != DType::kFloat32 && stored != DType::kFloat16 && stored != DType::kBFloat16) {
    return Err(StatusCode::kUnimplemented, "{}: type {}", name, DTypeName(stored));
  }
  for (const Edge edge : {node.inputs[0], node.inputs[1], Edge{context.group.nodes[0], 0}}) {
    const TensorType& type = context.graph.type(edge);
    if (type.NumElements() == 0) {
      return Err(StatusCode::kUnimplemented, "{}: operand {}", name, type.ToString());
    }
  }
  return OkStatus();
}

bool AreAll(const Ints& values, int64_t wanted) {
  return std::ranges::all_of(values, [&](int64_t value) { return value == wanted; });
}

// Sets the problem of a convolution that reads one pixel.
Status SetPointwise(const GroupContext& context, DenseProblem* p) {
  const Node& node = context.node(0);
  const Shape& w = context.graph.type(p->b).shape;
  const bool is_one_pixel =
      std::all_of(w.begin() + 2, w.end(), [](int64_t size) { return size == 1; });
  if (!is_one_pixel || node.Int("group") != 1 || !AreAll(node.IntList("strides"), 1) ||
      !AreAll(node.IntList("pads"), 0)) {
    return Err(StatusCode::kUnimplemented, "Conv: {} with strides, pads or groups is no product",
               ShapeToString(w));
  }
  if (context.InputOf(p->a) < 0 || context.InputOf(p->b) >= 0 ||
      context.InputOf(node.inputs[2]) >= 0) {
    return Err(StatusCode::kUnimplemented, "Conv: the image is a constant, or weights are none");
  }
  const Port& image = context.group.inputs[context.InputOf(p->a)];
  p->n = ChannelsInMemory(p->result, context.group.outputs[0].layout);
  p->k = ChannelsInMemory(context.graph.type(p->a).shape, image.layout);
  p->m = context.graph.type(p->a).NumElements() / w[1];
  AG_TRY(CheckPadding(context, *p));
  p->b_is_transposed = true;
  p->is_channels_last = true;
  p->tail.vectors.insert(p->tail.vectors.begin(), node.inputs[2]);
  return OkStatus();
}

Status SetMatMul(const GroupContext& context, DenseProblem* p) {
  const Shape& a = context.graph.type(p->a).shape;
  const Shape& b = context.graph.type(p->b).shape;
  p->m = a[a.size() - 2];
  p->k = a.back();
  p->n = b.back();
  std::vector<BatchAxis> axes = Joined(BatchAxes(a, b, p->result));
  // Rows follow each other where B is shared along the innermost axis and A is not.
  if (!axes.empty() && axes.back().b == 0 && axes.back().a == p->m * p->k) {
    p->m *= axes.back().size;
    axes.pop_back();
  }
  if (axes.size() > 1) {
    return Err(StatusCode::kUnimplemented, "MatMul: batch of {} times {} needs {} strides",
               ShapeToString(a), ShapeToString(b), axes.size());
  }
  if (!axes.empty()) {
    p->batch = axes[0].size;
    p->a_stride = axes[0].a;
    p->b_stride = axes[0].b;
    p->d_stride = p->m * p->n;
  }
  return OkStatus();
}

}  // namespace

StatusOr<DenseProblem> DenseProblemOf(const GroupContext& context) {
  const OpKind op = context.group.nodes.empty() ? OpKind::kInput : context.node(0).op;
  if (op != OpKind::kMatMul && op != OpKind::kConv) {
    return Err(StatusCode::kUnimplemented, "a {} group is no product of matrices",
               context.group.pattern);
  }
  const Node& node = context.node(0);
  DenseProblem p;
  AG_LET(p.tail, ReadTail(context));
  p.stored = StoredDType(node.outputs[0].dtype, context.precision);
  AG_TRY(CheckOperands(context, p.stored,
                       op == OpKind::kConv ? Layout::kChannelsLast : Layout::kPlain));
  p.a = node.inputs[0];
  p.b = node.inputs[1];
  p.result = node.outputs[0].shape;
  AG_TRY(op == OpKind::kConv ? SetPointwise(context, &p) : SetMatMul(context, &p));
  return p;
}

}  // namespace ag::cuda
