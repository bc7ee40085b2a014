#include "lab/taso/side.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "graph/tensor.h"

namespace ag {
namespace {

// The value that TASO's kernels add to the variance for every model (CUDNN_BN_MIN_EPSILON).
constexpr double kFoldingEpsilon = 1e-5;

Ints ToInts(const Shape& shape) { return {shape.begin(), shape.end()}; }

Ints Strides(const TasoOperator& op) {
  return {op.Get(TasoKey::kStrideHeight, 1), op.Get(TasoKey::kStrideWidth, 1)};
}

Ints Kernel(const TasoOperator& op) {
  return {op.Get(TasoKey::kKernelHeight, 1), op.Get(TasoKey::kKernelWidth, 1)};
}

TasoCut CutOf(const TasoValue& value, size_t axis) {
  return axis < value.cuts.size() ? value.cuts[axis] : TasoCut{};
}

Status WrongRank(std::string_view what, const Shape& shape) {
  return Err(StatusCode::kInvalidArgument, "{} has shape {}", what, ShapeToString(shape));
}

}  // namespace

// n rows of one 1 and n zeros, read in a row: after n * n numbers each row is shifted by one.
StatusOr<Edge> TasoSide::Identity(int64_t n) {
  AG_LET(const Edge ones, Filled({n, 1}, 1));
  AG_LET(const Edge rows, builder_.Add1(OpKind::kPad, {ones}, {{"pads", Ints{0, 0, 0, n}}}));
  AG_LET(const Edge flat, builder_.Add1(OpKind::kReshape, {rows}, {{"shape", Ints{n * (n + 1)}}}));
  AG_LET(const Edge first,
         builder_.Add1(
             OpKind::kSlice, {flat},
             {{"axes", Ints{0}}, {"starts", Ints{0}}, {"ends", Ints{n * n}}, {"steps", Ints{1}}}));
  return builder_.Add1(OpKind::kReshape, {first}, {{"shape", Ints{n, n}}});
}

// A large constant would have no bytes in the graph; an expand works for every size.
StatusOr<Edge> TasoSide::Filled(const Ints& shape, double value) {
  return builder_.Add1(OpKind::kExpand, {Number(value)}, {{"shape", shape}});
}

Edge TasoSide::Number(double value) {
  const Tensor tensor = Tensor::FromDoubles({DType::kFloat64, {}}, std::vector<double>{value});
  return builder_.Constant(tensor.type(), tensor.Name(), tensor.bytes());
}

Ints TasoSide::Pads(const TasoOperator& op, const Shape& x, const Ints& kernel) const {
  Ints pads(4, 0);
  if (op.Get(TasoKey::kPadding, kTasoValid) == kTasoValid) return pads;
  const Ints strides = Strides(op);
  for (size_t i = 0; i < 2; ++i) {
    const int64_t out = (x[i + 2] + strides[i] - 1) / strides[i];
    const int64_t total = std::max<int64_t>((out - 1) * strides[i] + kernel[i] - x[i + 2], 0);
    pads[i] = total / 2;
    pads[i + 2] = total - total / 2;
  }
  return pads;
}

StatusOr<Edge> TasoSide::Activated(Edge edge, TasoActivation activation) {
  switch (activation) {
    case TasoActivation::kNone:
      return edge;
    case TasoActivation::kSigmoid:
      return builder_.Add1(OpKind::kSigmoid, {edge});
    case TasoActivation::kRelu:
      return builder_.Add1(OpKind::kRelu, {edge});
    case TasoActivation::kTanh:
      return builder_.Add1(OpKind::kTanh, {edge});
  }
  return edge;
}

StatusOr<TasoValue> TasoSide::Conv(const TasoOperator& op) {
  const TasoValue& x = value(op.inputs[0]);
  const TasoValue& w = value(op.inputs[1]);
  const Shape in = shape(op.inputs[0]);
  const Shape kernel = shape(op.inputs[1]);
  if (in.size() != 4) return WrongRank("x", in);
  if (kernel.size() != 4) return WrongRank("w", kernel);
  if (kernel[1] == 0 || in[1] % kernel[1] != 0) {
    return Err(StatusCode::kInvalidArgument, "{} input channels for weights {}", in[1],
               ShapeToString(kernel));
  }
  const int64_t group = in[1] / kernel[1];
  context_.groups.emplace(op.inputs[1], group);
  AG_LET(Edge bias, Filled({kernel[0]}, 0));
  if (op.inputs.size() > 2) bias = value(op.inputs[2]).edge;
  AG_LET(const Edge conv, builder_.Add1(OpKind::kConv, {x.edge, w.edge, bias},
                                        {{"strides", Strides(op)},
                                         {"pads", Pads(op, in, {kernel[2], kernel[3]})},
                                         {"dilations", Ints{1, 1}},
                                         {"group", group}}));
  AG_LET(const Edge out, Activated(conv, op.activation()));
  return TasoValue{out, {CutOf(x, 0), CutOf(w, 0)}};
}

StatusOr<TasoValue> TasoSide::Pool(const TasoOperator& op) {
  const Shape in = shape(op.inputs[0]);
  if (in.size() != 4) return WrongRank("x", in);
  const OpKind kind = op.type == TasoOpType::kMaxPool ? OpKind::kMaxPool : OpKind::kAveragePool;
  Attributes attributes = {{"kernel_shape", Kernel(op)},
                           {"strides", Strides(op)},
                           {"pads", Pads(op, in, Kernel(op))},
                           {"dilations", Ints{1, 1}}};
  if (kind == OpKind::kAveragePool) attributes.Set("count_include_pad", int64_t{1});
  AG_LET(const Edge pool, builder_.Add1(kind, {value(op.inputs[0]).edge}, attributes));
  AG_LET(const Edge out, Activated(pool, op.activation()));
  return TasoValue{out, {CutOf(value(op.inputs[0]), 0), CutOf(value(op.inputs[0]), 1)}};
}

StatusOr<TasoValue> TasoSide::BatchNorm(const TasoOperator& op) {
  const int bits = op.Get(TasoKey::kEpsilon, 0);
  const double epsilon = bits != 0 ? double{std::bit_cast<float>(bits)} : context_.epsilon;
  std::vector<Edge> operands;
  for (const TasoTensor& input : op.inputs) operands.push_back(value(input).edge);
  AG_LET(const NodeId node, builder_.Add(OpKind::kBatchNorm, operands, {{"epsilon", epsilon}}));
  return TasoValue{{node, 0}, value(op.inputs[0]).cuts};
}

StatusOr<TasoValue> TasoSide::Concat(const TasoOperator& op) {
  const auto axis = static_cast<size_t>(op.Get(TasoKey::kAxis, 0));
  const auto rank = static_cast<size_t>(op.Get(TasoKey::kRank, 0));
  TasoValue out{.cuts = std::vector<TasoCut>(rank)};
  std::vector<Edge> operands;
  for (const TasoTensor& input : op.inputs) {
    if (shape(input).size() != rank) return WrongRank("operand", shape(input));
    operands.push_back(value(input).edge);
    out.cuts[axis].sizes.push_back(shape(input)[axis]);
    out.cuts[axis].parts.push_back(CutOf(value(input), axis));
  }
  AG_LET(const NodeId node,
         builder_.Add(OpKind::kConcat, operands, {{"axis", static_cast<int64_t>(axis)}}));
  out.edge = {node, 0};
  return out;
}

StatusOr<TasoValue> TasoSide::Transpose(const TasoOperator& op) {
  const TasoValue& x = value(op.inputs[0]);
  const Ints perm = TasoPermutation(op.Get(TasoKey::kPermutation, 0), op.Get(TasoKey::kRank, 0));
  TasoValue out;
  for (const int64_t axis : perm) out.cuts.push_back(CutOf(x, static_cast<size_t>(axis)));
  AG_LET(out.edge, builder_.Add1(OpKind::kTranspose, {x.edge}, {{"perm", perm}}));
  return out;
}

// Adds zeros on both sides of the kernel; of an odd number, one more at the end.
StatusOr<TasoValue> TasoSide::Enlarge(const TasoOperator& op) {
  const Shape w = shape(op.inputs[0]);
  if (w.size() != 4) return WrongRank("w", w);
  Ints kernel = Kernel(op);
  if (op.inputs.size() > 1) {
    const Shape like = shape(op.inputs[1]);
    if (like.size() != 4) return WrongRank("the larger kernel", like);
    kernel = {like[2], like[3]};
  }
  const Ints more = {kernel[0] - w[2], kernel[1] - w[3]};
  if (more[0] < 0 || more[1] < 0) return WrongRank("w", w);
  const Ints pads = {0, 0, more[0] / 2,           more[1] / 2,
                     0, 0, more[0] - more[0] / 2, more[1] - more[1] / 2};
  AG_LET(const Edge edge,
         builder_.Add1(OpKind::kPad, {value(op.inputs[0]).edge}, {{"pads", pads}}));
  return TasoValue{edge, {CutOf(value(op.inputs[0]), 0)}};
}

// Merges `count` neighbouring groups: each keeps its weights and gets zeros for the others'
// channels.
StatusOr<TasoValue> TasoSide::MergeGroups(const TasoOperator& op) {
  const TasoValue& w = value(op.inputs[0]);
  const Shape s = shape(op.inputs[0]);
  const auto known = context_.groups.find(op.inputs[0]);
  if (s.size() != 4 || known == context_.groups.end()) {
    return Err(StatusCode::kInvalidArgument, "nothing says how many groups read the weights {}",
               ShapeToString(s));
  }
  const int64_t count = op.Get(TasoKey::kMergeCount, 1);
  const int64_t groups = known->second;
  if (groups % count != 0 || s[0] % groups != 0) {
    return Err(StatusCode::kInvalidArgument, "{} groups cannot be merged by {}", groups, count);
  }
  AG_LET(const Edge blocks,
         builder_.Add1(OpKind::kReshape, {w.edge},
                       {{"shape", Ints{groups / count, count, s[0] / groups, s[1], s[2], s[3]}}}));
  std::vector<Edge> parts;
  for (int64_t i = 0; i < count; ++i) {
    AG_LET(
        const Edge block,
        builder_.Add1(
            OpKind::kSlice, {blocks},
            {{"axes", Ints{1}}, {"starts", Ints{i}}, {"ends", Ints{i + 1}}, {"steps", Ints{1}}}));
    Ints pads(12, 0);
    pads[3] = i * s[1];
    pads[9] = (count - 1 - i) * s[1];
    AG_LET(const Edge padded, builder_.Add1(OpKind::kPad, {block}, {{"pads", pads}}));
    parts.push_back(padded);
  }
  AG_LET(const NodeId joined, builder_.Add(OpKind::kConcat, parts, {{"axis", int64_t{1}}}));
  AG_LET(const Edge merged, builder_.Add1(OpKind::kReshape, {Edge{joined, 0}},
                                          {{"shape", Ints{s[0], s[1] * count, s[2], s[3]}}}));
  return TasoValue{merged, {CutOf(w, 0)}};
}

StatusOr<Edge> TasoSide::ScaleOf(Edge scale, Edge variance) {
  AG_LET(const Edge shifted, builder_.Add1(OpKind::kAdd, {variance, Number(kFoldingEpsilon)}));
  AG_LET(const Edge root, builder_.Add1(OpKind::kSqrt, {shifted}));
  return builder_.Add1(OpKind::kDiv, {scale, root});
}

StatusOr<TasoValue> TasoSide::FoldedWeights(const TasoOperator& op) {
  const TasoValue& w = value(op.inputs[0]);
  const Shape s = shape(op.inputs[0]);
  if (s.size() != 4) return WrongRank("w", s);
  AG_LET(const Edge scale, ScaleOf(value(op.inputs[1]).edge, value(op.inputs[2]).edge));
  AG_LET(const Edge column,
         builder_.Add1(OpKind::kReshape, {scale}, {{"shape", Ints{s[0], 1, 1, 1}}}));
  AG_LET(const Edge folded, builder_.Add1(OpKind::kMul, {w.edge, column}));
  return TasoValue{folded, w.cuts};
}

StatusOr<TasoValue> TasoSide::FoldedBias(const TasoOperator& op) {
  AG_LET(const Edge scale, ScaleOf(value(op.inputs[0]).edge, value(op.inputs[3]).edge));
  AG_LET(const Edge moved, builder_.Add1(OpKind::kMul, {value(op.inputs[2]).edge, scale}));
  AG_LET(const Edge bias, builder_.Add1(OpKind::kSub, {value(op.inputs[1]).edge, moved}));
  return TasoValue{bias, {}};
}

StatusOr<TasoValue> TasoSide::Elementwise(const TasoOperator& op, OpKind kind) {
  std::vector<Edge> operands;
  TasoValue out;
  for (const TasoTensor& input : op.inputs) {
    operands.push_back(value(input).edge);
    if (out.cuts.empty()) out.cuts = value(input).cuts;
  }
  AG_LET(const NodeId node, builder_.Add(kind, operands));
  AG_LET(out.edge, Activated({node, 0}, op.activation()));
  if (kind == OpKind::kMatMul) {
    out.cuts = {CutOf(value(op.inputs[0]), 0), CutOf(value(op.inputs[1]), 1)};
  }
  return out;
}

StatusOr<Edge> TasoSide::MakeConstant(const TasoOperator& constant, const TasoOperator& reader,
                                      int input) {
  const TasoTensor& other = reader.inputs[input == 0 ? reader.inputs.size() - 1 : 0];
  if (!Has(other)) {
    return Err(StatusCode::kInvalidArgument, "nothing says the shape of its constant");
  }
  const Shape like = shape(other);
  const Ints kernel = Kernel(constant);
  const bool weights = reader.type == TasoOpType::kConv && input == 1 && like.size() == 4;
  if (constant.type == TasoOpType::kConstantPool && weights) {
    const double share = 1.0 / static_cast<double>(kernel[0] * kernel[1]);
    return Filled({like[1], 1, kernel[0], kernel[1]}, share);
  }
  if (constant.type == TasoOpType::kConstantConv && weights) {
    AG_LET(const Edge square, Identity(like[1]));
    AG_LET(const Edge identity,
           builder_.Add1(OpKind::kReshape, {square}, {{"shape", Ints{like[1], like[1], 1, 1}}}));
    const Ints before = {(kernel[0] - 1) / 2, (kernel[1] - 1) / 2};
    return builder_.Add1(OpKind::kPad, {identity},
                         {{"pads", Ints{0, 0, before[0], before[1], 0, 0, kernel[0] - 1 - before[0],
                                        kernel[1] - 1 - before[1]}}});
  }
  if (constant.type == TasoOpType::kConstantIdentity && reader.type == TasoOpType::kMatMul &&
      like.size() == 2) {
    return Identity(like[input == 0 ? 0 : 1]);
  }
  if (constant.type == TasoOpType::kConstantOne) {
    return Filled(ToInts(like), 1);
  }
  return Err(StatusCode::kInvalidArgument, "{} cannot be an operand of {}",
             TasoOpName(constant.type), TasoOpName(reader.type));
}

Status TasoSide::MakeConstants(const TasoOperator& reader) {
  for (size_t i = 0; i < reader.inputs.size(); ++i) {
    const TasoTensor& input = reader.inputs[i];
    if (Has(input)) continue;
    if (input.op < 0) {
      return Err(StatusCode::kInvalidArgument, "variable {} does not stand in the source",
                 TasoVariableName(input.op));
    }
    AG_LET(const Edge edge, MakeConstant(operators_[input.op], reader, static_cast<int>(i)));
    values_[input] = {edge, {}};
  }
  return OkStatus();
}

Status TasoSide::Split(int at) {
  const TasoOperator& op = operators_[at];
  const TasoValue x = value(op.inputs[0]);
  const auto axis = static_cast<size_t>(op.Get(TasoKey::kAxis, 0));
  const TasoCut cut = CutOf(x, axis);
  if (static_cast<int>(cut.sizes.size()) != op.outputs()) {
    return Err(StatusCode::kInvalidArgument, "axis {} was not joined from {} parts", axis,
               op.outputs());
  }
  AG_LET(const NodeId node,
         builder_.Add(OpKind::kSplit, std::vector<Edge>{x.edge},
                      {{"axis", static_cast<int64_t>(axis)}, {"sizes", cut.sizes}}));
  for (int i = 0; i < op.outputs(); ++i) {
    TasoValue part{{node, i}, x.cuts};
    part.cuts.resize(std::max(part.cuts.size(), axis + 1));
    part.cuts[axis] = cut.parts[static_cast<size_t>(i)];
    values_[{at, i}] = std::move(part);
  }
  return OkStatus();
}

StatusOr<TasoValue> TasoSide::Make(const TasoOperator& op) {
  switch (op.type) {
    case TasoOpType::kConv:
      return Conv(op);
    case TasoOpType::kMaxPool:
    case TasoOpType::kAveragePool:
      return Pool(op);
    case TasoOpType::kRelu:
      return Elementwise(op, OpKind::kRelu);
    case TasoOpType::kSigmoid:
      return Elementwise(op, OpKind::kSigmoid);
    case TasoOpType::kTanh:
      return Elementwise(op, OpKind::kTanh);
    case TasoOpType::kAdd:
      return Elementwise(op, OpKind::kAdd);
    case TasoOpType::kMul:
    case TasoOpType::kScalarMul:
      return Elementwise(op, OpKind::kMul);
    case TasoOpType::kMatMul:
      return Elementwise(op, OpKind::kMatMul);
    case TasoOpType::kBatchNorm:
      return BatchNorm(op);
    case TasoOpType::kConcat:
      return Concat(op);
    case TasoOpType::kTranspose:
      return Transpose(op);
    case TasoOpType::kEnlarge:
      return Enlarge(op);
    case TasoOpType::kMergeGroups:
      return MergeGroups(op);
    case TasoOpType::kFoldedWeights:
      return FoldedWeights(op);
    case TasoOpType::kFoldedBias:
      return FoldedBias(op);
    case TasoOpType::kReshape:
      return Err(StatusCode::kInvalidArgument, "the format does not say the shape");
    case TasoOpType::kSplit:
    case TasoOpType::kConstantIdentity:
    case TasoOpType::kConstantConv:
    case TasoOpType::kConstantOne:
    case TasoOpType::kConstantPool:
      break;
  }
  return Err(StatusCode::kInternal, "made elsewhere");
}

Status TasoSide::Add(int at) {
  const TasoOperator& op = operators_[at];
  if (op.inputs.empty()) return OkStatus();  // A constant.
  AG_TRY(MakeConstants(op), "{}", TasoOpName(op.type));
  if (op.type == TasoOpType::kSplit) {
    AG_TRY(Split(at), "{}", TasoOpName(op.type));
    return OkStatus();
  }
  StatusOr<TasoValue> made = Make(op);
  if (!made.ok()) return Within(made.status(), TasoOpName(op.type));
  values_[{at, 0}] = *std::move(made);
  return OkStatus();
}

}  // namespace ag
