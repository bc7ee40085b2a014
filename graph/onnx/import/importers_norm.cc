// Importers of softmax, normalizations and reductions.
#include <algorithm>
#include <numeric>

#include "graph/onnx/import/node_import.h"

namespace ag {
namespace {

// The matrix on which softmax works before opset 13: the axes before `axis` are rows, the others
// columns.
struct Rows {
  ValueId x = kNoValue;
  int64_t axis = 0;
};

StatusOr<Rows> RowsOf(NodeImport& node) {
  const ValueId x = node.In(0);
  const int64_t rank = node.Rank(x);
  AG_LET(const int64_t axis, ResolveAxis(node.Int("axis", node.opset() < 13 ? 1 : -1), rank));
  if (node.opset() >= 13 || axis == rank - 1) return Rows{x, axis};
  const Shape shape = node.ShapeOf(x);
  Ints matrix(shape.begin(), shape.begin() + axis);
  matrix.push_back(NumElements({shape.data() + axis, shape.size() - axis}));
  AG_LET(const ValueId flat, node.Reshape(x, matrix));
  return Rows{flat, axis};
}

Status ImportSoftmax(NodeImport& node) {
  AG_LET(const Rows rows, RowsOf(node));
  AG_LET(ValueId value, node.Emit(OpKind::kSoftmax, {rows.x}, {{"axis", rows.axis}}));
  return node.Out(node.Reshape(value, node.ShapeOf(node.In(0))));
}

// Computes x - max - log(sum(exp(x - max))), which never takes the logarithm of a sum rounded to
// zero.
Status ImportLogSoftmax(NodeImport& node) {
  AG_LET(const Rows rows, RowsOf(node));
  const Attributes reduce{{"axes", Ints{rows.axis}}, {"keepdims", int64_t{1}}};
  AG_LET(const ValueId max, node.Emit(OpKind::kReduceMax, {rows.x}, reduce));
  AG_LET(const ValueId shifted, node.Emit(OpKind::kSub, {rows.x, max}));
  AG_LET(ValueId sum, node.Emit(OpKind::kExp, {shifted}));
  AG_LET(sum, node.Emit(OpKind::kReduceSum, {sum}, reduce));
  AG_LET(sum, node.Emit(OpKind::kLog, {sum}));
  AG_LET(ValueId value, node.Emit(OpKind::kSub, {shifted, sum}));
  return node.Out(node.Reshape(value, node.ShapeOf(node.In(0))));
}

Status ImportBatchNormalization(NodeImport& node) {
  AG_TRY(node.OnlyFirstOutput());
  node.Ignore("momentum");
  if (node.Int("training_mode", 0) != 0) {
    return Err(StatusCode::kUnimplemented, "training mode is not supported");
  }
  std::vector<ValueId> operands = node.inputs();
  const Shape x = node.ShapeOf(node.In(0));
  const bool by_element = node.opset() < 9 && node.Int("spatial", 1) == 0 && x.size() > 2;
  if (by_element) {  // Every element of a batch item is a channel.
    const int64_t channels = NumElements(std::span(x).subspan(1));
    AG_LET(operands[0], node.Reshape(operands[0], Shape{x[0], channels}));
    for (size_t i = 1; i < operands.size(); ++i) {
      AG_LET(operands[i], node.Reshape(operands[i], Shape{channels}));
    }
  }
  AG_LET(const std::vector<ValueId> values,
         node.EmitAll(OpKind::kBatchNorm, operands, {{"epsilon", node.Float("epsilon", 1e-5)}}));
  return node.Out(by_element ? node.Reshape(values[0], x) : values[0]);
}

Status ImportLayerNormalization(NodeImport& node) {
  AG_TRY(node.OnlyFirstOutput());
  node.Ignore("stash_type");
  AG_LET(const int64_t axis, ResolveAxis(node.Int("axis", -1), node.Rank(node.In(0))));
  const std::span<const int64_t> normalized =
      std::span(node.ShapeOf(node.In(0))).subspan(static_cast<size_t>(axis));
  for (const size_t i : {1, 2}) {
    if (!node.Has(i) || std::ranges::equal(node.ShapeOf(node.In(i)), normalized)) continue;
    return Err(StatusCode::kUnimplemented, "input {}: {} is not of the normalized axes", i,
               node.Type(node.In(i)).ToString());
  }
  ValueId bias = node.Has(2) ? node.In(2) : kNoValue;
  if (bias == kNoValue) {
    AG_LET(bias, node.Filled(node.Type(node.In(1)), 0));
  }
  return node.Out(node.Emit(OpKind::kLayerNorm, {node.In(0), node.In(1), bias},
                            {{"axis", axis}, {"epsilon", node.Float("epsilon", 1e-5)}}));
}

// RMSNormalization has this name since opset 23. Models from ONNX Runtime have it as
// SimplifiedLayerNormalization, below.
Status ImportRmsNormalization(NodeImport& node) {
  AG_TRY(node.OnlyFirstOutput());
  node.Ignore("stash_type");
  AG_LET(const int64_t axis, ResolveAxis(node.Int("axis", -1), node.Rank(node.In(0))));
  return node.Out(node.Emit(OpKind::kRmsNorm, {node.In(0), node.In(1)},
                            {{"axis", axis}, {"epsilon", node.Float("epsilon", 1e-5)}}));
}

// Returns nothing when `noop_with_empty_axes` turns the reduction itself off.
StatusOr<std::optional<Attributes>> ReductionOf(NodeImport& node, bool axes_are_input) {
  AG_TRY(node.CheckInputs(1, axes_are_input ? 2 : 1));
  const int64_t rank = node.Rank(node.In(0));
  std::optional<Ints> axes;
  if (!axes_are_input) axes = node.IntList("axes");
  if (axes_are_input && node.Has(1)) {
    AG_LET(axes, node.KnownInts(1));
  }
  const bool keep_all = axes_are_input && node.Int("noop_with_empty_axes", 0) != 0;
  const int64_t keepdims = node.Int("keepdims", 1) != 0 ? 1 : 0;
  if (!axes.has_value() || axes->empty()) {
    if (keep_all) return std::optional<Attributes>();
    axes = Ints(rank);
    std::iota(axes->begin(), axes->end(), 0);
  }
  AG_LET(Ints resolved, ResolveAxes(*axes, rank));
  return std::optional<Attributes>(
      Attributes{{"axes", std::move(resolved)}, {"keepdims", keepdims}});
}

constexpr OpKind kNothing = OpKind::kOpaque;

// Whether one of the axes of operand 0 has no elements.
bool IsEmpty(const NodeImport& node, const Ints& axes) {
  return std::ranges::any_of(axes,
                             [&](int64_t axis) { return node.ShapeOf(node.In(0))[axis] == 0; });
}

// Reductions as after(op(before(x))), with the reductions that the IR has; kMul squares.
template <OpKind op, OpKind before = kNothing, OpKind after = kNothing>
Status ImportReduction(NodeImport& node) {
  const bool axes_are_input =
      node.opset() >= 18 || (node.node().op_type == "ReduceSum" && node.opset() >= 13);
  AG_LET(const std::optional<Attributes> reduce, ReductionOf(node, axes_are_input));
  if (reduce.has_value() && op == OpKind::kReduceMax && IsEmpty(node, reduce->IntList("axes"))) {
    return Err(StatusCode::kUnimplemented, "the extreme of an empty set is not supported");
  }
  ValueId value = node.In(0);
  if (before == OpKind::kMul) {
    AG_LET(value, node.Emit(before, {value, value}));
  } else if (before != kNothing) {
    AG_LET(value, node.Emit(before, {value}));
  }
  if (reduce.has_value()) {
    AG_LET(value, node.Emit(op, {value}, *reduce));
  }
  if (after != kNothing) {
    AG_LET(value, node.Emit(after, {value}));
  }
  return node.Out(value);
}

Status ImportReduceMin(NodeImport& node) {
  if (!IsFloat(node.Type(node.In(0)).dtype)) {
    return Err(StatusCode::kUnimplemented, "the minimum of integers is not supported");
  }
  return ImportReduction<OpKind::kReduceMax, OpKind::kNeg, OpKind::kNeg>(node);
}

}  // namespace

std::span<const NodeImporterRow> NormImporters() {
  static constexpr NodeImporterRow kRows[] = {
      {"Softmax", ImportSoftmax, 1, 1},
      {"LogSoftmax", ImportLogSoftmax, 1, 1},
      {"BatchNormalization", ImportBatchNormalization, 5, 5},
      {"LayerNormalization", ImportLayerNormalization, 2, 3},
      {"RMSNormalization", ImportRmsNormalization, 2, 2},
      {"SimplifiedLayerNormalization", ImportRmsNormalization, 2, 2},
      {"ReduceMean", ImportReduction<OpKind::kReduceMean>},
      {"ReduceSum", ImportReduction<OpKind::kReduceSum>},
      {"ReduceMax", ImportReduction<OpKind::kReduceMax>},
      {"ReduceMin", ImportReduceMin, 1, 2},
      {"ReduceL1", ImportReduction<OpKind::kReduceSum, OpKind::kAbs>},
      {"ReduceL2", ImportReduction<OpKind::kReduceSum, OpKind::kMul, OpKind::kSqrt>},
      {"ReduceSumSquare", ImportReduction<OpKind::kReduceSum, OpKind::kMul>},
      {"ReduceLogSum", ImportReduction<OpKind::kReduceSum, kNothing, OpKind::kLog>},
  };
  return kRows;
}

}  // namespace ag
