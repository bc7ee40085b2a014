#include "graph/batch/axis_parts.h"

#include <algorithm>

namespace ag {
namespace {

using Kind = AxisPart::Kind;
constexpr AxisPart kMixedPart{Kind::kMixed, -1};
constexpr AxisPart kWholePart{Kind::kWhole, -1};
AxisPart CutPart(int64_t axis) { return {Kind::kCut, static_cast<int>(axis)}; }

// What all functions of the table below are given.
struct Query {
  const Node& node;
  const Shape& out;
  const Shape& in;  // Of the operand.
  int axis;
  size_t operand;
};

bool Contains(const Ints& values, int64_t value) {
  return std::ranges::find(values, value) != values.end();
}

// Numpy's broadcast: axes are aligned at the end.
AxisPart OfBroadcast(const Query& q) {
  const int at = q.axis - static_cast<int>(q.out.size()) + static_cast<int>(q.in.size());
  if (at < 0 || (q.in[at] == 1 && q.out[q.axis] != 1)) return kWholePart;
  return CutPart(at);
}

// A 1 x 1 window without strides and pads reads the pixel that it writes.
bool IsPointwise(const Query& q, const Shape& weights) {
  const auto all = [](const Ints& values, int64_t value) {
    return std::ranges::all_of(values, [&](int64_t v) { return v == value; });
  };
  return std::all_of(weights.begin() + 2, weights.end(), [](int64_t v) { return v == 1; }) &&
         all(q.node.IntList("strides"), 1) && all(q.node.IntList("pads"), 0);
}

AxisPart OfConv(const Graph& graph, const Query& q) {
  if (q.operand > 0) return q.axis == 1 ? CutPart(0) : kWholePart;
  if (q.axis == 0) return CutPart(0);
  const Shape& weights = graph.type(q.node.inputs[1]).shape;
  if (q.axis == 1) {
    const bool depthwise = weights[1] == 1 && weights[0] == q.in[1];
    return depthwise ? CutPart(1) : kWholePart;
  }
  return IsPointwise(q, weights) ? CutPart(q.axis) : kMixedPart;
}

AxisPart OfMatMul(const Query& q) {
  const int rank = static_cast<int>(q.out.size());
  if (q.in.size() < 2 || rank < 2) return kMixedPart;
  const int last = static_cast<int>(q.in.size()) - 1;
  if (q.axis == rank - 1) return q.operand == 0 ? kWholePart : CutPart(last);
  if (q.axis == rank - 2) return q.operand == 0 ? CutPart(last - 1) : kWholePart;
  return OfBroadcast(q);
}

AxisPart OfPool(const Query& q) { return q.axis < 2 ? CutPart(q.axis) : kMixedPart; }

AxisPart OfReduce(const Query& q) {
  const Ints& axes = q.node.IntList("axes");
  if (q.node.Int("keepdims") != 0) return Contains(axes, q.axis) ? kMixedPart : CutPart(q.axis);
  int left = q.axis;
  for (int at = 0; at < static_cast<int>(q.in.size()); ++at) {
    if (!Contains(axes, at) && left-- == 0) return CutPart(at);
  }
  return kMixedPart;
}

AxisPart OfResize(const Query& q) {
  return q.in[q.axis] == q.out[q.axis] ? CutPart(q.axis) : kMixedPart;
}

AxisPart OfSoftmax(const Query& q) {
  return q.axis == q.node.Int("axis") ? kMixedPart : CutPart(q.axis);
}

AxisPart OfBatchNorm(const Query& q) {
  if (q.operand == 0) return CutPart(q.axis);
  return q.axis == 1 ? CutPart(0) : kWholePart;
}

// Layer and RMS norm: over all axes from `axis` on.
AxisPart OfLayerNorm(const Query& q) {
  if (q.axis >= q.node.Int("axis")) return kMixedPart;
  return q.operand == 0 ? CutPart(q.axis) : kWholePart;
}

// Concat, split: along `axis`.
AxisPart OfJoin(const Query& q) {
  return q.axis == q.node.Int("axis") ? kMixedPart : CutPart(q.axis);
}

AxisPart OfSlice(const Query& q) {
  return Contains(q.node.IntList("axes"), q.axis) ? kMixedPart : CutPart(q.axis);
}

AxisPart OfTranspose(const Query& q) { return CutPart(q.node.IntList("perm")[q.axis]); }

// The axes before an axis hold equally many elements on both sides: then an f-th of one axis and
// an f-th of the other are the same elements.
AxisPart OfReshape(const Query& q) {
  int64_t before = 1;
  for (int i = 0; i < q.axis; ++i) before *= q.out[i];
  int64_t passed = 1;
  for (int at = 0; at < static_cast<int>(q.in.size()); ++at) {
    if (passed == before && q.in[at] != 1) return CutPart(at);
    passed *= q.in[at];
  }
  return kMixedPart;
}

AxisPart OfPad(const Query& q) {
  const Ints& pads = q.node.IntList("pads");
  const size_t rank = q.out.size();
  const bool padded = pads[q.axis] != 0 || pads[rank + q.axis] != 0;
  return padded ? kMixedPart : CutPart(q.axis);
}

// The axes of the indices stand where the axis stood that they index.
AxisPart OfGather(const Graph& graph, const Query& q) {
  const int at = static_cast<int>(q.node.Int("axis"));
  const int ranks = static_cast<int>(graph.type(q.node.inputs[1]).shape.size());
  const bool of_indices = q.axis >= at && q.axis < at + ranks;
  if (q.operand == 1) return of_indices ? CutPart(q.axis - at) : kWholePart;
  if (of_indices) return kWholePart;
  return CutPart(q.axis < at ? q.axis : q.axis - ranks + 1);
}

AxisPart OfTrait(const Query& q) {
  const OpKind op = q.node.op;
  if (Has(op, kElementwise)) return OfBroadcast(q);
  if (Has(op, kPooling)) return OfPool(q);
  if (Has(op, kReduction)) return OfReduce(q);
  if (Has(op, kResampling)) return OfResize(q);
  return kMixedPart;
}

// Operators whose traits do not say enough.
struct OpRow {
  OpKind op;
  AxisPart (*part)(const Query& q);
};
constexpr OpRow kOpRows[] = {
    {OpKind::kMatMul, OfMatMul},       {OpKind::kSoftmax, OfSoftmax},
    {OpKind::kBatchNorm, OfBatchNorm}, {OpKind::kLayerNorm, OfLayerNorm},
    {OpKind::kRmsNorm, OfLayerNorm},   {OpKind::kConcat, OfJoin},
    {OpKind::kSplit, OfJoin},          {OpKind::kSlice, OfSlice},
    {OpKind::kTranspose, OfTranspose}, {OpKind::kReshape, OfReshape},
    {OpKind::kExpand, OfBroadcast},    {OpKind::kPad, OfPad},
};

}  // namespace

AxisPart PartOfOperand(const Graph& graph, NodeId id, int axis, size_t operand) {
  const Node& node = graph.node(id);
  const Query query{node, node.outputs[0].shape, graph.type(node.inputs[operand]).shape, axis,
                    operand};
  if (node.op == OpKind::kConv) return OfConv(graph, query);
  if (node.op == OpKind::kGather) return OfGather(graph, query);
  for (const OpRow& row : kOpRows) {
    if (row.op == node.op) return row.part(query);
  }
  return OfTrait(query);
}

std::optional<int> ResultAxisOf(const Graph& graph, NodeId id, size_t operand, int axis) {
  const int rank = static_cast<int>(graph.node(id).outputs[0].shape.size());
  const AxisPart wanted = CutPart(axis);
  for (int a = 0; a < rank; ++a) {
    if (graph.node(id).outputs[0].shape[a] == 1) continue;
    if (PartOfOperand(graph, id, a, operand) == wanted) return a;
  }
  return std::nullopt;
}

bool CanCut(const Graph& graph, NodeId id, int axis) {
  const Node& node = graph.node(id);
  if (node.inputs.empty() || node.op == OpKind::kOpaque) return false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (PartOfOperand(graph, id, axis, i).kind == Kind::kMixed) return false;
  }
  return true;
}

}  // namespace ag
