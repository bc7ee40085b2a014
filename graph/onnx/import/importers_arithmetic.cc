// Importers of arithmetic that the IR expresses with other operators.
#include <limits>

#include "graph/onnx/import/node_import.h"

namespace ag {
namespace {

// Imports an n-ary operator as op(op(a, b), c)...
StatusOr<ValueId> Chain(NodeImport& node, OpKind op) {
  AG_TRY(node.CheckInputs(std::max<size_t>(node.size(), 1), node.size()));
  ValueId value = node.In(0);
  for (size_t i = 1; i < node.size(); ++i) {
    AG_LET(value, node.Emit(op, {value, node.In(i)}));
  }
  return value;
}

template <OpKind op>
Status ImportChain(NodeImport& node) {
  return node.Out(Chain(node, op));
}

Status ImportMean(NodeImport& node) {
  AG_LET(ValueId value, Chain(node, OpKind::kAdd));
  if (node.size() > 1) {
    AG_LET(const ValueId count,
           node.Scalar(node.Type(value).dtype, static_cast<double>(node.size())));
    AG_LET(value, node.Emit(OpKind::kDiv, {value, count}));
  }
  return node.Out(value);
}

StatusOr<ValueId> Scaled(NodeImport& node, ValueId value, double factor) {
  if (factor == 1) return value;
  AG_LET(const ValueId scalar, node.Scalar(node.Type(value).dtype, factor));
  return node.Emit(OpKind::kMul, {value, scalar});
}

// Imports alpha * A' * B' + beta * C.
Status ImportGemm(NodeImport& node) {
  ValueId a = node.In(0), b = node.In(1);
  if (node.Rank(a) != 2 || node.Rank(b) != 2) {
    return Err(StatusCode::kInvalidArgument, "expected matrices, got {} and {}",
               node.Type(a).ToString(), node.Type(b).ToString());
  }
  if (node.Int("transA", 0) != 0) {
    AG_LET(a, node.Emit(OpKind::kTranspose, {a}, {{"perm", Ints{1, 0}}}));
  }
  if (node.Int("transB", 0) != 0) {
    AG_LET(b, node.Emit(OpKind::kTranspose, {b}, {{"perm", Ints{1, 0}}}));
  }
  node.Ignore("broadcast");  // Before opset 7: C broadcasts, as it does today.
  AG_LET(ValueId value, node.Emit(OpKind::kMatMul, {a, b}));
  AG_LET(value, Scaled(node, value, node.Float("alpha", 1)));
  const double beta = node.Float("beta", 1);
  if (node.Has(2)) {
    const TensorType product = node.Type(value);
    AG_LET(const ValueId c, Scaled(node, node.In(2), beta));
    AG_LET(value, node.Emit(OpKind::kAdd, {value, c}));
    if (node.Type(value) != product) {
      return Err(StatusCode::kInvalidArgument, "C {} does not broadcast to {}",
                 node.Type(c).ToString(), product.ToString());
    }
  }
  return node.Out(value);
}

// Turns vectors into matrices with one row or column, and the result back.
Status ImportMatMul(NodeImport& node) {
  ValueId a = node.In(0), b = node.In(1);
  const bool row = node.Rank(a) == 1, column = node.Rank(b) == 1;
  if (row) {
    AG_LET(a, node.Reshape(a, Ints{1, node.ShapeOf(a)[0]}));
  }
  if (column) {
    AG_LET(b, node.Reshape(b, Ints{node.ShapeOf(b)[0], 1}));
  }
  AG_LET(ValueId value, node.Emit(OpKind::kMatMul, {a, b}));
  if (row || column) {
    Shape shape = node.ShapeOf(value);
    if (column) shape.pop_back();
    if (row) shape.erase(shape.end() - (column ? 1 : 2));
    AG_LET(value, node.Reshape(value, shape));
  }
  return node.Out(value);
}

// Known bounds become attributes, others max and min.
Status ImportClip(NodeImport& node) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double bounds[2] = {-kInfinity, kInfinity};
  if (node.opset() < 11) {
    bounds[0] = node.Float("min", bounds[0]);
    bounds[1] = node.Float("max", bounds[1]);
  }
  bool all_known = true;
  for (size_t i = 1; i <= 2; ++i) {
    if (!node.Has(i)) continue;
    if (node.Type(node.In(i)).dtype != node.Type(node.In(0)).dtype) {
      return Err(StatusCode::kInvalidArgument, "element types differ: {} and {}",
                 DTypeName(node.Type(node.In(0)).dtype), DTypeName(node.Type(node.In(i)).dtype));
    }
    const StatusOr<double> bound = node.KnownScalar(i);
    if (bound.ok()) {
      bounds[i - 1] = *bound;
    } else if (bound.status().code() == StatusCode::kUnimplemented) {
      all_known = false;
    } else {
      return bound.status();
    }
  }
  ValueId value = node.In(0);
  if (!all_known) {
    for (size_t i = 1; i <= 2; ++i) {
      if (!node.Has(i)) continue;
      AG_LET(value, node.Emit(i == 1 ? OpKind::kMax : OpKind::kMin, {value, node.In(i)}));
    }
    return node.Out(value);
  }
  if (bounds[0] == -kInfinity && bounds[1] == kInfinity) return node.Out(value);
  return node.Out(node.Emit(OpKind::kClip, {value}, {{"min", bounds[0]}, {"max", bounds[1]}}));
}

// The exponent and the base may have different element types.
Status ImportPow(NodeImport& node) {
  const ValueId base = node.In(0);
  ValueId exponent = node.In(1);
  const DType dtype = node.Type(base).dtype;
  if (node.Type(exponent).dtype != dtype) {
    if (!IsFloat(dtype)) {
      return Err(StatusCode::kUnimplemented, "integers to the power of {} are not supported",
                 DTypeName(node.Type(exponent).dtype));
    }
    AG_LET(exponent, node.Emit(OpKind::kCast, {exponent}, {{"to", static_cast<int64_t>(dtype)}}));
  }
  return node.Out(node.Emit(OpKind::kPow, {base, exponent}));
}

bool IsSigned(DType dtype) {
  return dtype == DType::kInt64 || dtype == DType::kInt32 || dtype == DType::kInt16 ||
         dtype == DType::kInt8;
}

// Whether a cast between integers may cut bits, which the IR's cast does not: it saturates. From
// i64 to i32 is taken as one that does not, because indices and sizes are cast so.
bool CutsBits(DType from, DType to) {
  if (!IsInteger(from) || !IsInteger(to) || (from == DType::kInt64 && to == DType::kInt32)) {
    return false;
  }
  const int64_t bits_from = 8 * SizeOf(from) - (IsSigned(from) ? 1 : 0);
  const int64_t bits_to = 8 * SizeOf(to) - (IsSigned(to) ? 1 : 0);
  return bits_to < bits_from || (IsSigned(from) && !IsSigned(to));
}

Status CastTo(NodeImport& node, DType to) {
  const DType from = node.Type(node.In(0)).dtype;
  const auto is_plain = [](DType dtype) { return dtype != DType::kString && !IsNarrow(dtype); };
  if (!is_plain(from) || !is_plain(to)) {
    return Err(StatusCode::kUnimplemented, "casts from {} to {} are not supported", DTypeName(from),
               DTypeName(to));
  }
  if (to == node.Type(node.In(0)).dtype) {
    return node.Out(node.In(0));
  }
  if (CutsBits(node.Type(node.In(0)).dtype, to)) {
    return Err(StatusCode::kUnimplemented, "casts that cut bits are not supported");
  }
  return node.Out(node.Emit(OpKind::kCast, {node.In(0)}, {{"to", static_cast<int64_t>(to)}}));
}

Status ImportCast(NodeImport& node) {
  node.Ignore("saturate");  // Of 8-bit floats only.
  AG_LET(const DType to, DTypeFromOnnx(static_cast<int32_t>(node.Int("to", 0))));
  return CastTo(node, to);
}

Status ImportCastLike(NodeImport& node) { return CastTo(node, node.Type(node.In(1)).dtype); }

// a >= b equals (a > b or a = b), also for NaN.
template <OpKind op>
Status ImportOrEqual(NodeImport& node) {
  AG_LET(const ValueId strict, node.Emit(op, {node.In(0), node.In(1)}));
  AG_LET(const ValueId equal, node.Emit(OpKind::kEqual, {node.In(0), node.In(1)}));
  return node.Out(node.Emit(OpKind::kOr, {strict, equal}));
}

}  // namespace

std::span<const NodeImporterRow> ArithmeticImporters() {
  static constexpr NodeImporterRow kRows[] = {
      {"Sum", ImportChain<OpKind::kAdd>},
      {"Min", ImportChain<OpKind::kMin>},
      {"Max", ImportChain<OpKind::kMax>},
      {"Mean", ImportMean},
      {"Gemm", ImportGemm, 2, 3},
      {"MatMul", ImportMatMul, 2, 2},
      {"Clip", ImportClip, 1, 3},
      {"Pow", ImportPow, 2, 2},
      {"Cast", ImportCast, 1, 1},
      {"CastLike", ImportCastLike, 2, 2},
      {"GreaterOrEqual", ImportOrEqual<OpKind::kGreater>, 2, 2},
      {"LessOrEqual", ImportOrEqual<OpKind::kLess>, 2, 2},
  };
  return kRows;
}

}  // namespace ag
