// Importers of fused operators of domain com.microsoft: as the operators they were fused of, so
// that rewrites and fast kernels apply. Forms that are missing here stay as they are.
#include <cmath>
#include <limits>
#include <numeric>

#include "graph/onnx/import/node_import.h"

namespace ag {
namespace {

Status LacksForm(std::string_view what) {
  return Err(StatusCode::kUnimplemented, "{} are not supported", what);
}

// Returns value op scalar.
StatusOr<ValueId> WithScalar(NodeImport& node, OpKind op, ValueId value, double scalar) {
  if (op == OpKind::kMul && scalar == 1) return value;
  AG_LET(const ValueId other, node.Scalar(node.Type(value).dtype, scalar));
  return node.Emit(op, {value, other});
}

// Adds operand `i`, when there is one, which broadcasts to `value`.
StatusOr<ValueId> WithOperand(NodeImport& node, ValueId value, size_t i) {
  if (!node.Has(i)) return value;
  const TensorType type = node.Type(value);
  AG_LET(value, node.Emit(OpKind::kAdd, {value, node.In(i)}));
  if (node.Type(value) == type) return value;
  return Err(StatusCode::kInvalidArgument, "input {}: {} does not broadcast to {}", i,
             node.Type(node.In(i)).ToString(), type.ToString());
}

enum class GeluForm : uint8_t { kErf, kTanh };

// Gelu of operand 0, plus operand 1 if there is one.
template <GeluForm form>
Status ImportBiasedGelu(NodeImport& node) {
  AG_LET(const ValueId x, WithOperand(node, node.In(0), 1));
  const std::string name = form == GeluForm::kTanh ? "tanh" : "none";
  return node.Out(node.Emit(OpKind::kGelu, {x}, {{"approximate", name}}));
}

// Returns x * sigmoid(alpha * x).
StatusOr<ValueId> Gated(NodeImport& node, ValueId x, double alpha) {
  if (alpha == 1) return node.Emit(OpKind::kSwish, {x});
  AG_LET(ValueId gate, WithScalar(node, OpKind::kMul, x, alpha));
  AG_LET(gate, node.Emit(OpKind::kSigmoid, {gate}));
  return node.Emit(OpKind::kMul, {x, gate});
}

Status ImportQuickGelu(NodeImport& node) {
  return node.Out(Gated(node, node.In(0), node.Float("alpha", 1.702F)));
}

// Swish(x), and SwiGLU(x, y), which multiplies it by y.
Status ImportSwish(NodeImport& node) {
  AG_LET(ValueId out, Gated(node, node.In(0), node.Float("alpha", 1)));
  if (!node.Has(1)) return node.Out(out);
  if (node.ShapeOf(node.In(1)) != node.ShapeOf(node.In(0))) {
    return Err(StatusCode::kInvalidArgument, "{} and {} have different shapes",
               node.Type(node.In(0)).ToString(), node.Type(node.In(1)).ToString());
  }
  return node.Out(node.Emit(OpKind::kMul, {out, node.In(1)}));
}

// Applies the activation that the node names; `scales` are its parameters.
StatusOr<ValueId> Activated(NodeImport& node, ValueId x, const std::vector<double>& scales) {
  const std::string name = node.String("activation", "");
  const auto scale = [&](size_t i, double otherwise) {
    return i < scales.size() ? scales[i] : otherwise;
  };
  if (name.empty()) return x;
  if (name == "Relu") return node.Emit(OpKind::kRelu, {x});
  if (name == "Tanh") return node.Emit(OpKind::kTanh, {x});
  if (name == "Sigmoid") return node.Emit(OpKind::kSigmoid, {x});
  if (name == "LeakyRelu") {
    return node.Emit(OpKind::kLeakyRelu, {x}, {{"alpha", scale(0, 0.01F)}});
  }
  if (name == "HardSigmoid") {
    return node.Emit(OpKind::kHardSigmoid, {x},
                     {{"alpha", scale(0, 0.2F)}, {"beta", scale(1, 0.5F)}});
  }
  if (name == "Clip" && scales.size() == 2) {
    return node.Emit(OpKind::kClip, {x}, {{"min", scales[0]}, {"max", scales[1]}});
  }
  return Err(StatusCode::kUnimplemented, "activation {} is not supported", Quoted(name));
}

// Imports the node as one of an operator of the default domain, which reads the same attributes.
Status ImportAs(std::string_view name, std::span<const NodeImporterRow> rows, NodeImport& node) {
  for (const NodeImporterRow& row : rows) {
    if (row.name == name) return row.run(node);
  }
  return LacksForm(name);
}

Status ImportFusedConv(NodeImport& node) {
  const std::vector<float> given =
      node.FloatList("activation_params").value_or(std::vector<float>());
  AG_TRY(ImportAs("Conv", WindowImporters(), node));
  AG_LET(const ValueId value, WithOperand(node, node.results()[0], 3));
  return node.Out(Activated(node, value, {given.begin(), given.end()}));
}

Status ImportFusedGemm(NodeImport& node) {
  std::vector<double> scales;
  for (const std::string_view name : {"activation_alpha", "activation_beta"}) {
    if (node.HasAttribute(name)) scales.push_back(node.Float(name, 0));
  }
  node.Ignore("activation_gamma");  // Of functions that no optimizer fuses.
  AG_TRY(ImportAs("Gemm", ArithmeticImporters(), node));
  return node.Out(Activated(node, node.results()[0], scales));
}

// Imports alpha * A' * B', with the last two axes changed (trans) or axis 0 behind the axes of the
// batch (transBatch).
Status ImportFusedMatMul(NodeImport& node) {
  std::vector<ValueId> sides;
  for (const size_t i : {0, 1}) {
    const std::string side = i == 0 ? "A" : "B";
    ValueId value = node.In(i);
    Ints perm(static_cast<size_t>(node.Rank(value)));
    std::iota(perm.begin(), perm.end(), 0);
    const Ints same = perm;
    const bool batch = node.Int("transBatch" + side, 0) != 0;
    const bool flips = node.Int("trans" + side, 0) != 0;
    if (perm.size() < 2) return LacksForm("products of vectors");
    if (batch) std::rotate(perm.begin(), perm.begin() + 1, perm.end() - 1);
    if (flips) std::swap(perm.back(), perm[perm.size() - 2]);
    if (perm != same) {
      AG_LET(value, node.Emit(OpKind::kTranspose, {value}, {{"perm", perm}}));
    }
    sides.push_back(value);
  }
  AG_LET(const ValueId product, node.Emit(OpKind::kMatMul, {sides[0], sides[1]}));
  return node.Out(WithScalar(node, OpKind::kMul, product, node.Float("alpha", 1)));
}

// Normalizes the last axis, with a gain and a shift (kNoValue: none).
StatusOr<ValueId> NormalizedRows(NodeImport& node, OpKind op, ValueId x, ValueId gain,
                                 ValueId shift) {
  const Attributes attributes{{"axis", node.Rank(x) - 1},
                              {"epsilon", node.Float("epsilon", 1e-12F)}};
  if (op == OpKind::kRmsNorm) return node.Emit(op, {x, gain}, attributes);
  if (shift == kNoValue) {
    AG_LET(shift, node.Filled(node.Type(gain), 0));
  }
  return node.Emit(op, {x, gain, shift}, attributes);
}

// Operands: x, skip, gain, shift (of kLayerNorm only), bias. Result 3 is the sum.
template <OpKind op>
Status ImportSkipNormalization(NodeImport& node) {
  constexpr bool kShifts = op == OpKind::kLayerNorm;
  if (node.Wants(1) || node.Wants(2)) return LacksForm("moments as results");
  if (node.Rank(node.In(0)) < 1) return LacksForm("scalars");
  AG_LET(ValueId sum, WithOperand(node, node.In(0), 1));
  AG_LET(sum, WithOperand(node, sum, kShifts ? 4 : 3));
  if (node.Wants(3)) node.Out(3, sum);
  const ValueId shift = kShifts && node.Has(3) ? node.In(3) : kNoValue;
  return node.Out(NormalizedRows(node, op, sum, node.In(2), shift));
}

// Returns how many elements of each row of the mask [batch, steps] are 1; zeros without a mask.
StatusOr<ValueId> CountKept(NodeImport& node, int64_t batch) {
  if (!node.Has(7)) return node.Filled({DType::kInt32, {batch}}, 0);
  if (node.ShapeOf(node.In(7)) != node.ShapeOf(node.In(0))) return LacksForm("masks of this form");
  AG_LET(const ValueId one, node.Scalar(node.Type(node.In(7)).dtype, 1));
  AG_LET(ValueId kept, node.Emit(OpKind::kEqual, {node.In(7), one}));
  AG_LET(kept, node.Emit(OpKind::kCast, {kept}, {{"to", static_cast<int64_t>(DType::kFloat32)}}));
  AG_LET(kept,
         node.Emit(OpKind::kReduceSum, {kept}, {{"axes", Ints{1}}, {"keepdims", int64_t{0}}}));
  return node.Emit(OpKind::kCast, {kept}, {{"to", static_cast<int64_t>(DType::kInt32)}});
}

// Operands: word ids, segment ids, tables of words, positions and segments, gain, shift, a mask,
// position ids. Results: the normalized sum, the number of words that the mask keeps, the sum.
Status ImportEmbedLayerNormalization(NodeImport& node) {
  node.Ignore("mask_index_type");
  const auto missing = [&](size_t i) { return !node.Has(i); };
  if (missing(2) || missing(3) || missing(5) || missing(6) || node.Rank(node.In(0)) != 2 ||
      node.Rank(node.In(2)) != 2 || node.Rank(node.In(3)) != 2) {
    return LacksForm("these operands");
  }
  const Shape ids = node.ShapeOf(node.In(0));
  if (ids[1] > node.ShapeOf(node.In(3))[0]) return LacksForm("more steps than positions");
  const auto rows = [&](size_t table, size_t i) {
    return node.Emit(OpKind::kGather, {node.In(table), node.In(i)}, {{"axis", int64_t{0}}});
  };
  AG_LET(ValueId sum, rows(2, 0));
  ValueId positions = kNoValue;
  if (node.Has(8)) {
    AG_LET(positions, rows(3, 8));
  } else {
    AG_LET(
        positions,
        node.Emit(
            OpKind::kSlice, {node.In(3)},
            {{"axes", Ints{0}}, {"starts", Ints{0}}, {"ends", Ints{ids[1]}}, {"steps", Ints{1}}}));
  }
  AG_LET(sum, node.Emit(OpKind::kAdd, {sum, positions}));
  if (node.Has(1) && node.Has(4)) {
    AG_LET(const ValueId segments, rows(4, 1));
    AG_LET(sum, node.Emit(OpKind::kAdd, {sum, segments}));
  }
  if (node.ShapeOf(sum) != Shape{ids[0], ids[1], node.ShapeOf(node.In(2))[1]}) {
    return LacksForm("these operands");
  }
  if (node.Wants(1)) {
    AG_LET(const ValueId kept, CountKept(node, ids[0]));
    node.Out(1, kept);
  }
  if (node.Wants(2)) node.Out(2, sum);
  return node.Out(NormalizedRows(node, OpKind::kLayerNorm, sum, node.In(5), node.In(6)));
}

// Queries, keys or values as [batch, heads, steps, size].
StatusOr<ValueId> SplitHeads(NodeImport& node, ValueId x, int64_t heads) {
  const Shape shape = node.ShapeOf(x);
  if (shape.size() != 3 || heads < 1 || shape[2] % heads != 0) return LacksForm("these operands");
  AG_LET(x, node.Reshape(x, Shape{shape[0], shape[1], heads, shape[2] / heads}));
  return node.Emit(OpKind::kTranspose, {x}, {{"perm", Ints{0, 2, 1, 3}}});
}

struct AttentionParts {
  ValueId q = kNoValue, k = kNoValue, v = kNoValue;  // [batch, heads, steps, size]
  size_t mask = 0, bias = 0;                         // Operands.
};

// Returns which keys the mask of a call keeps, as a bool that broadcasts to the scores. The mask is
// the number of keys of each batch item, or a flag for each key, or for each query and key.
StatusOr<ValueId> KeptKeys(NodeImport& node, size_t i, const Shape& scores) {
  const TensorType mask = node.Type(node.In(i));
  const int64_t batch = scores[0], queries = scores[2], keys = scores[3];
  if (!IsInteger(mask.dtype)) return LacksForm("masks that are no integers");
  if (mask.shape == Shape{batch}) {
    Ints places(static_cast<size_t>(keys));
    std::iota(places.begin(), places.end(), 0);
    const std::vector<double> numbers(places.begin(), places.end());
    AG_LET(const ValueId place, node.Constant(Tensor::FromDoubles({mask.dtype, {keys}}, numbers)));
    AG_LET(const ValueId ends, node.Reshape(node.In(i), Shape{batch, 1, 1, 1}));
    return node.Emit(OpKind::kLess, {place, ends});
  }
  Shape shape = {batch, 1, 1, keys};
  if (mask.shape == Shape{batch, queries, keys}) {
    shape[2] = queries;
  } else if (mask.shape != Shape{batch, keys}) {
    return LacksForm("masks of this form");
  }
  AG_LET(const ValueId flags, node.Reshape(node.In(i), shape));
  AG_LET(const ValueId zero, node.Scalar(mask.dtype, 0));
  return node.Emit(OpKind::kGreater, {flags, zero});
}

// Returns a constant [queries, keys] that makes later keys count nothing. The last query goes with
// the last key.
StatusOr<ValueId> OrderBias(NodeImport& node, const TensorType& type) {
  if (type.Bytes() > node.importer().limits().tensor_bytes_max) return LacksForm("such sizes");
  Tensor order = Tensor::Zeros(type);
  const double low = type.dtype == DType::kFloat16 ? -65504 : std::numeric_limits<float>::lowest();
  const int64_t queries = type.shape[0], keys = type.shape[1];
  for (int64_t at = 0; at < queries * keys; ++at) {
    if (at % keys > at / keys + keys - queries) order.Put(at, low);
  }
  return node.Constant(order);
}

// Adds to the scores what mask, order of the places and operand `bias` say.
StatusOr<ValueId> BiasedScores(NodeImport& node, ValueId scores, const AttentionParts& parts) {
  const TensorType type = node.Type(scores);
  const double filter = node.Float("mask_filter_value", -10000);
  if (node.Has(parts.mask)) {
    AG_LET(const ValueId kept, KeptKeys(node, parts.mask, type.shape));
    AG_LET(const ValueId zero, node.Scalar(type.dtype, 0));
    AG_LET(const ValueId low, node.Scalar(type.dtype, filter));
    AG_LET(const ValueId added, node.Emit(OpKind::kWhere, {kept, zero, low}));
    AG_LET(scores, node.Emit(OpKind::kAdd, {scores, added}));
  }
  if (node.Int("unidirectional", 0) != 0) {
    AG_LET(const ValueId order, OrderBias(node, {type.dtype, {type.shape[2], type.shape[3]}}));
    AG_LET(scores, node.Emit(OpKind::kAdd, {scores, order}));
  }
  return WithOperand(node, scores, parts.bias);
}

// Imports softmax(scale * q * k' + bias) * v as [batch, steps, heads * size].
Status ImportScores(NodeImport& node, const AttentionParts& parts) {
  const Shape q = node.ShapeOf(parts.q), v = node.ShapeOf(parts.v);
  const double scale = node.Float("scale", 0);
  AG_LET(const ValueId k, node.Emit(OpKind::kTranspose, {parts.k}, {{"perm", Ints{0, 1, 3, 2}}}));
  AG_LET(ValueId scores, node.Emit(OpKind::kMatMul, {parts.q, k}));
  AG_LET(scores, WithScalar(node, OpKind::kMul, scores,
                            scale == 0 ? 1 / std::sqrt(static_cast<double>(q[3])) : scale));
  AG_LET(scores, BiasedScores(node, scores, parts));
  AG_LET(const ValueId shares, node.Emit(OpKind::kSoftmax, {scores}, {{"axis", int64_t{3}}}));
  AG_LET(ValueId y, node.Emit(OpKind::kMatMul, {shares, parts.v}));
  AG_LET(y, node.Emit(OpKind::kTranspose, {y}, {{"perm", Ints{0, 2, 1, 3}}}));
  return node.Out(node.Reshape(y, Shape{q[0], q[2], q[1] * v[3]}));
}

// Operands: x, weights of the three projections side by side, their biases, a mask, a cache, a bias
// of the scores.
Status ImportProjectedAttention(NodeImport& node) {
  const int64_t heads = node.Int("num_heads", 0);
  const TensorType x = node.Type(node.In(0)), w = node.Type(node.In(1));
  if (node.Has(4) || node.Has(6) || node.Wants(1) || node.Int("do_rotary", 0) != 0) {
    return LacksForm("caches and rotations");
  }
  node.Ignore("rotary_embedding_dim");
  node.Ignore("past_present_share_buffer");
  if (x.shape.size() != 3 || w.shape.size() != 2 || x.NumElements() == 0) {
    return LacksForm("these operands");
  }
  Ints widths = node.IntList("qkv_hidden_sizes").value_or(Ints());
  if (widths.empty()) widths.assign(3, w.shape[1] / 3);
  for (const int64_t width : widths) {
    if (width < 1) return LacksForm("these widths");
  }
  AG_LET(ValueId rows, node.Emit(OpKind::kMatMul, {node.In(0), node.In(1)}));
  AG_LET(rows, WithOperand(node, rows, 2));
  const ValueId all[] = {rows};
  AG_LET(const std::vector<ValueId> split,
         node.EmitAll(OpKind::kSplit, all, {{"axis", int64_t{2}}, {"sizes", widths}}));
  if (split.size() != 3) return LacksForm("these widths");
  AttentionParts parts{.mask = 3, .bias = 5};
  AG_LET(parts.q, SplitHeads(node, split[0], heads));
  AG_LET(parts.k, SplitHeads(node, split[1], heads));
  AG_LET(parts.v, SplitHeads(node, split[2], heads));
  return ImportScores(node, parts);
}

// Adds a slice of operand `bias`, the biases of queries, keys and values one after the other.
StatusOr<ValueId> WithBiasSlice(NodeImport& node, ValueId x, int64_t first) {
  if (!node.Has(3)) return x;
  const int64_t end = first + node.ShapeOf(x).back();
  const Shape& whole = node.ShapeOf(node.In(3));
  if (whole.size() != 1 || end > whole[0]) return LacksForm("biases of this form");
  AG_LET(
      const ValueId bias,
      node.Emit(
          OpKind::kSlice, {node.In(3)},
          {{"axes", Ints{0}}, {"starts", Ints{first}}, {"ends", Ints{end}}, {"steps", Ints{1}}}));
  return node.Emit(OpKind::kAdd, {x, bias});
}

// Operands: queries, keys, values, biases, a mask, a bias of the scores, caches of keys and values.
// Results: y, the new caches.
Status ImportMultiHeadAttention(NodeImport& node) {
  const int64_t heads = node.Int("num_heads", 0);
  if (!node.Has(1) || !node.Has(2) || node.Has(8) || node.Has(9) || node.Wants(3)) {
    return LacksForm("these operands");
  }
  std::vector<ValueId> split;
  int64_t first = 0;
  for (const size_t i : {0, 1, 2}) {
    const bool has_heads = i > 0 && node.Rank(node.In(i)) == 4;
    ValueId x = node.In(i);
    if (!has_heads) {
      if (node.Rank(x) != 3 || node.Type(x).NumElements() == 0) return LacksForm("these operands");
      AG_LET(x, WithBiasSlice(node, x, first));
      first += node.ShapeOf(x)[2];
      AG_LET(x, SplitHeads(node, x, heads));
    }
    split.push_back(x);
    if (i == 0 || !node.Has(5 + i)) continue;
    AG_LET(split.back(), node.Emit(OpKind::kConcat, {node.In(5 + i), x}, {{"axis", int64_t{2}}}));
  }
  if (node.Wants(1)) node.Out(1, split[1]);
  if (node.Wants(2)) node.Out(2, split[2]);
  return ImportScores(node, {split[0], split[1], split[2], 4, 5});
}

}  // namespace

std::span<const NodeImporterRow> MicrosoftImporters() {
  static constexpr NodeImporterRow kRows[] = {
      {"Swish", ImportSwish, 1, 1},  // The same gate as QuickGelu's.
      {"SwiGLU", ImportSwish, 2, 2},
      {"com.microsoft.Gelu", ImportBiasedGelu<GeluForm::kErf>, 1, 1},
      {"com.microsoft.BiasGelu", ImportBiasedGelu<GeluForm::kErf>, 2, 2},
      {"com.microsoft.FastGelu", ImportBiasedGelu<GeluForm::kTanh>, 1, 2},
      {"com.microsoft.QuickGelu", ImportQuickGelu, 1, 1},
      {"com.microsoft.FusedConv", ImportFusedConv, 2, 4},
      {"com.microsoft.FusedGemm", ImportFusedGemm, 2, 3},
      {"com.microsoft.FusedMatMul", ImportFusedMatMul, 2, 2},
      {"com.microsoft.TransposeMatMul", ImportFusedMatMul, 2, 2},
      {"com.microsoft.SkipLayerNormalization", ImportSkipNormalization<OpKind::kLayerNorm>, 3, 5},
      {"com.microsoft.SkipSimplifiedLayerNormalization", ImportSkipNormalization<OpKind::kRmsNorm>,
       3, 4},
      {"com.microsoft.EmbedLayerNormalization", ImportEmbedLayerNormalization, 1, 9},
      {"com.microsoft.Attention", ImportProjectedAttention, 2, 7},
      {"com.microsoft.MultiHeadAttention", ImportMultiHeadAttention, 1, 10},
  };
  return kRows;
}

}  // namespace ag
