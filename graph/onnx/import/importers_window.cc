// Importers of convolution and pooling. Padding becomes explicit, a missing bias is added, and one
// spatial axis becomes two. Nodes with more than two spatial axes are kept as opaque nodes.
#include <algorithm>

#include "graph/onnx/import/node_import.h"

namespace ag {
namespace {

struct WindowAttributes {
  Ints kernel, strides, pads, dilations;
};

Status CheckCount(std::string_view name, const Ints& values, size_t count) {
  if (values.size() == count) return OkStatus();
  return Err(StatusCode::kInvalidArgument, "{}: expected {} values, got {}", name, count,
             values.size());
}

// SAME_UPPER and SAME_LOWER: the result has ceil(size / stride) positions.
Status PadSame(const Shape& x, bool upper, WindowAttributes& window) {
  const size_t axes = window.kernel.size();
  for (size_t i = 0; i < axes; ++i) {
    constexpr int64_t kMost = int64_t{1} << 30;
    const int64_t k = window.kernel[i], s = window.strides[i], d = window.dilations[i];
    if (k < 1 || s < 1 || d < 1 || std::max({k, s, d}) > kMost) {
      return Err(StatusCode::kInvalidArgument, "kernel {}, stride {}, dilation {} of axis {}", k, s,
                 d, i);
    }
    const int64_t size = x[i + 2];
    const int64_t positions = (size + s - 1) / s;
    const int64_t total = std::max<int64_t>((positions - 1) * s + (k - 1) * d + 1 - size, 0);
    window.pads[i] = upper ? total / 2 : total - total / 2;
    window.pads[axes + i] = total - window.pads[i];
  }
  return OkStatus();
}

StatusOr<WindowAttributes> WindowOf(NodeImport& node, const Shape& x, const Ints& kernel) {
  const size_t axes = x.size() - 2;
  WindowAttributes window{.kernel = node.IntList("kernel_shape").value_or(kernel),
                          .strides = node.IntList("strides").value_or(Ints(axes, 1)),
                          .pads = node.IntList("pads").value_or(Ints(2 * axes, 0)),
                          .dilations = node.IntList("dilations").value_or(Ints(axes, 1))};
  AG_TRY(CheckCount("kernel_shape", window.kernel, axes));
  AG_TRY(CheckCount("strides", window.strides, axes));
  AG_TRY(CheckCount("pads", window.pads, 2 * axes));
  AG_TRY(CheckCount("dilations", window.dilations, axes));
  const std::string auto_pad = node.String("auto_pad", "NOTSET");
  if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
    AG_TRY(PadSame(x, auto_pad == "SAME_UPPER", window));
  } else if (auto_pad == "VALID") {
    window.pads = Ints(2 * axes, 0);
  } else if (auto_pad != "NOTSET") {
    return Err(StatusCode::kInvalidArgument, "auto_pad {} is not known", Quoted(auto_pad));
  }
  return window;
}

Status CheckRank(const Shape& x) {
  if (x.size() == 3 || x.size() == 4) return OkStatus();
  if (x.size() > 4) {
    return Err(StatusCode::kUnimplemented, "{} spatial axes are not supported", x.size() - 2);
  }
  return Err(StatusCode::kInvalidArgument, "expected rank 3 or more, got {}", ShapeToString(x));
}

// Makes the one spatial axis the second of two.
Shape Widened(const Shape& shape) { return {shape[0], shape[1], 1, shape[2]}; }

void Widen(WindowAttributes& window) {
  window.kernel.insert(window.kernel.begin(), 1);
  window.strides.insert(window.strides.begin(), 1);
  window.dilations.insert(window.dilations.begin(), 1);
  window.pads = {0, window.pads[0], 0, window.pads[1]};
}

// With windows of one element three axes are as good as two.
bool IsPointwise(const WindowAttributes& window) {
  const auto is = [](int64_t value) { return [=](int64_t v) { return v == value; }; };
  return std::ranges::all_of(window.kernel, is(1)) && std::ranges::all_of(window.strides, is(1)) &&
         std::ranges::all_of(window.pads, is(0));
}

// A pointwise convolution over three axes, the last two of them as one.
Status ImportPointwise(NodeImport& node, ValueId x, ValueId w, ValueId bias) {
  const Shape in = node.ShapeOf(x), weight = node.ShapeOf(w);
  AG_LET(x, node.Reshape(x, Shape{in[0], in[1], in[2], in[3] * in[4]}));
  AG_LET(w, node.Reshape(w, Shape{weight[0], weight[1], 1, 1}));
  AG_LET(const ValueId value, node.Emit(OpKind::kConv, {x, w, bias},
                                        {{"strides", Ints{1, 1}},
                                         {"pads", Ints(4, 0)},
                                         {"dilations", Ints{1, 1}},
                                         {"group", node.Int("group", 1)}}));
  return node.Out(node.Reshape(value, Shape{in[0], weight[0], in[2], in[3], in[4]}));
}

StatusOr<ValueId> Narrowed(NodeImport& node, ValueId value) {
  const Shape shape = node.ShapeOf(value);
  return node.Reshape(value, Shape{shape[0], shape[1], shape[3]});
}

Status ImportConv(NodeImport& node) {
  ValueId x = node.In(0), w = node.In(1);
  const Shape weight = node.ShapeOf(w);
  if (node.Rank(x) != 5) AG_TRY(CheckRank(node.ShapeOf(x)));
  if (weight.size() != node.ShapeOf(x).size()) {
    return Err(StatusCode::kInvalidArgument, "x {} and w {} differ in rank",
               node.Type(x).ToString(), node.Type(w).ToString());
  }
  const Ints kernel(weight.begin() + 2, weight.end());
  AG_LET(WindowAttributes window, WindowOf(node, node.ShapeOf(x), kernel));
  if (window.kernel != kernel) {
    return Err(StatusCode::kInvalidArgument, "kernel_shape {} differs from that of w {}",
               ShapeToString(window.kernel), ShapeToString(weight));
  }
  if (kernel.size() == 3 && !IsPointwise(window)) AG_TRY(CheckRank(node.ShapeOf(x)));
  const bool narrow = kernel.size() == 1;
  if (narrow) {
    AG_LET(x, node.Reshape(x, Widened(node.ShapeOf(x))));
    AG_LET(w, node.Reshape(w, Widened(weight)));
    Widen(window);
  }
  ValueId bias = node.Has(2) ? node.In(2) : kNoValue;
  if (bias == kNoValue) {
    AG_LET(bias, node.Filled({node.Type(w).dtype, {weight[0]}}, 0));
  }
  if (kernel.size() == 3) return ImportPointwise(node, x, w, bias);
  AG_LET(ValueId value, node.Emit(OpKind::kConv, {x, w, bias},
                                  {{"strides", window.strides},
                                   {"pads", window.pads},
                                   {"dilations", window.dilations},
                                   {"group", node.Int("group", 1)}}));
  if (narrow) {
    AG_LET(value, Narrowed(node, value));
  }
  return node.Out(value);
}

// With ceil_mode a window may be larger than the padded input; the IR has no such form.
Status CheckSpans(const Shape& x, const WindowAttributes& window) {
  const size_t axes = window.kernel.size();
  for (size_t i = 0; i < axes; ++i) {
    const double span =
        (static_cast<double>(window.kernel[i]) - 1) * static_cast<double>(window.dilations[i]);
    const double room = static_cast<double>(x[i + 2]) + static_cast<double>(window.pads[i]) +
                        static_cast<double>(window.pads[axes + i]);
    if (span < room) continue;
    return Err(StatusCode::kUnimplemented, "axis {}: a window larger than {}", i + 2, room);
  }
  return OkStatus();
}

template <OpKind op>
Status ImportPool(NodeImport& node) {
  AG_TRY(node.OnlyFirstOutput());
  ValueId x = node.In(0);
  if (!IsFloat(node.Type(x).dtype)) {
    return Err(StatusCode::kUnimplemented, "pools of integers are not supported");
  }
  AG_TRY(CheckRank(node.ShapeOf(x)));
  AG_LET(WindowAttributes window, WindowOf(node, node.ShapeOf(x), {}));
  if (node.Int("ceil_mode", 0) != 0) AG_TRY(CheckSpans(node.ShapeOf(x), window));
  const bool narrow = node.Rank(x) == 3;
  if (narrow) {
    AG_LET(x, node.Reshape(x, Widened(node.ShapeOf(x))));
    Widen(window);
  }
  Attributes attributes{{"kernel_shape", window.kernel},
                        {"strides", window.strides},
                        {"pads", window.pads},
                        {"dilations", window.dilations},
                        {"ceil_mode", node.Int("ceil_mode", 0)}};
  if (op == OpKind::kAveragePool) {
    attributes.Set("count_include_pad", node.Int("count_include_pad", 0));
  } else {
    // It only orders the indices output, which the node does not want.
    node.Ignore("storage_order");
  }
  AG_LET(ValueId value, node.Emit(op, {x}, std::move(attributes)));
  if (narrow) {
    AG_LET(value, Narrowed(node, value));
  }
  return node.Out(value);
}

template <OpKind op>
Status ImportGlobalPool(NodeImport& node) {
  if (node.Rank(node.In(0)) < 3) {
    return Err(StatusCode::kInvalidArgument, "expected rank 3 or more, got {}",
               node.Type(node.In(0)).ToString());
  }
  Ints axes;
  for (int64_t axis = 2; axis < node.Rank(node.In(0)); ++axis) axes.push_back(axis);
  return node.Out(node.Emit(op, {node.In(0)}, {{"axes", axes}, {"keepdims", int64_t{1}}}));
}

}  // namespace

std::span<const NodeImporterRow> WindowImporters() {
  static constexpr NodeImporterRow kRows[] = {
      {"Conv", ImportConv, 2, 3},
      {"MaxPool", ImportPool<OpKind::kMaxPool>, 1, 1},
      {"AveragePool", ImportPool<OpKind::kAveragePool>, 1, 1},
      {"GlobalAveragePool", ImportGlobalPool<OpKind::kReduceMean>, 1, 1},
      {"GlobalMaxPool", ImportGlobalPool<OpKind::kReduceMax>, 1, 1},
  };
  return kRows;
}

}  // namespace ag
