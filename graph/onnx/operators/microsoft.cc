// Operators of domain com.microsoft on floating point numbers: what exporters and the optimizer of
// ONNX Runtime make of several nodes.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "graph/onnx/operators/activation.h"
#include "graph/onnx/operators/inner.h"
#include "graph/onnx/operators/layout.h"
#include "graph/onnx/operators/matrix.h"
#include "graph/onnx/operators/normalize.h"
#include "graph/onnx/operators/spatial_window.h"
#include "graph/onnx/operators/wide.h"

namespace ag::onnx_operators {
namespace {

using Doubles = std::vector<double>;

double LogisticOf(double v) { return 1 / (1 + std::exp(-v)); }
double GeluOf(double v) { return v / 2 * (1 + std::erf(v / std::numbers::sqrt2)); }
double FastGeluOf(double v) {
  return v / 2 * (1 + std::tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)));
}

// Makes result 0 of function(x + bias); without operand 1 of function(x).
template <double (*function)(double)>
Status RunBiased(OperatorCall& call) {
  AG_TRY(call.CheckInputs(1, 2));
  if (!IsFloat(call.TypeOf(0))) return RefuseType(call.TypeOf(0));
  Doubles values = call.In(0).ToDoubles(), bias(values.size());
  if (call.Has(1)) {
    AG_LET(bias, SpreadOf(call, 1, call.ShapeOf(0)));
  }
  for (size_t i = 0; i < values.size(); ++i) values[i] = function(values[i] + bias[i]);
  return GiveNarrowed(call, 0, call.Type(0), values);
}

Status RunQuickGelu(OperatorCall& call) {
  AG_TRY(call.CheckInputs(1, 1));
  if (!IsFloat(call.TypeOf(0))) return RefuseType(call.TypeOf(0));
  const double alpha = call.Float("alpha", 1.702F);
  Doubles values = call.In(0).ToDoubles();
  for (double& v : values) v *= LogisticOf(alpha * v);
  return GiveNarrowed(call, 0, call.Type(0), values);
}

// The left half of x + bias times Gelu of the right half.
Status RunBiasSplitGelu(OperatorCall& call) {
  AG_TRY(call.CheckInputs(2, 2));
  Shape shape = call.ShapeOf(0);
  if (!IsFloat(call.TypeOf(0))) return RefuseType(call.TypeOf(0));
  if (shape.empty() || shape.back() % 2 != 0) {
    return Err(StatusCode::kInvalidArgument, "expected an even last axis, got {}",
               call.Type(0).ToString());
  }
  const Doubles x = call.In(0).ToDoubles();
  AG_LET(const Doubles bias, SpreadOf(call, 1, shape));
  const auto half = static_cast<size_t>(shape.back() / 2);
  Doubles values;
  for (size_t i = 0; i < x.size(); ++i) {
    if (i / half % 2 == 1) continue;
    values.push_back((x[i] + bias[i]) * GeluOf(x[i + half] + bias[i + half]));
  }
  shape.back() /= 2;
  return GiveNarrowed(call, 0, {call.TypeOf(0), shape}, values);
}

// Returns the function that a fused node applies at its end. Clip has its bounds in `scales`.
StatusOr<Activation> FusedActivation(OperatorCall& call, ActivationScales scales) {
  const std::string name = call.String("activation", "");
  if (name.empty()) return Activation([](double v) { return v; });
  if (name != "Clip") return ActivationOf(name, scales);
  const double low = scales.Alpha(std::numeric_limits<float>::lowest());
  const double high = scales.Beta(std::numeric_limits<float>::max());
  return Activation([=](double v) { return std::min(std::max(v, low), high); });
}

// Conv, plus operand 3, then an activation.
Status RunFusedConv(OperatorCall& call) {
  AG_TRY(call.CheckInputs(2, 4));
  if (!IsFloat(call.TypeOf(0))) return RefuseType(call.TypeOf(0));
  ActivationScales scales;
  const std::vector<float> given =
      call.FloatList("activation_params").value_or(std::vector<float>());
  if (!given.empty()) scales.alpha = {given[0]};
  if (given.size() > 1) scales.beta = {given[1]};
  AG_LET(const Activation activation, FusedActivation(call, std::move(scales)));
  const Doubles x = call.In(0).ToDoubles(), w = call.In(1).ToDoubles();
  const Doubles bias = call.Has(2) ? call.In(2).ToDoubles() : Doubles();
  AG_LET(Convolved out, Convolve(call, {x, call.ShapeOf(0)}, {w, call.ShapeOf(1)}, bias));
  if (call.Has(3)) {
    AG_LET(const Doubles more, SpreadOf(call, 3, out.shape));
    for (size_t i = 0; i < more.size(); ++i) out.values[i] += more[i];
  }
  for (double& v : out.values) v = activation(v);
  return GiveNarrowed(call, 0, {call.TypeOf(0), out.shape}, out.values);
}

// How a side of a product lies. `batch`: axis 0 goes behind the axes of the batch. `rows`: then the
// last two axes change places.
struct SideForm {
  bool batch = false, rows = false;
};
Matrix SideOf(const OperatorCall& call, size_t i, const SideForm& form) {
  Matrix side{call.ShapeOf(i), call.In(i).ToDoubles()};
  Ints perm;
  for (int64_t axis = 0; axis < call.Rank(i); ++axis) perm.push_back(axis);
  if (perm.size() < 2) return side;
  if (form.batch) std::rotate(perm.begin(), perm.begin() + 1, perm.end() - 1);
  if (form.rows) std::swap(perm.back(), perm[perm.size() - 2]);
  return Permuted(side, perm);
}

Status CheckPair(const OperatorCall& call) {
  if (!IsFloat(call.TypeOf(0))) return RefuseType(call.TypeOf(0));
  return call.CheckType(1, call.TypeOf(0));
}

Status RunFusedMatMul(OperatorCall& call) {
  AG_TRY(call.CheckInputs(2, 2));
  AG_TRY(CheckPair(call));
  const SideForm a{call.Int("transBatchA", 0) != 0, call.Int("transA", 0) != 0};
  const SideForm b{call.Int("transBatchB", 0) != 0, call.Int("transB", 0) != 0};
  const double alpha = call.Float("alpha", 1);
  AG_LET(Matrix product,
         MultiplyMatrices(call, call.TypeOf(0), SideOf(call, 0, a), SideOf(call, 1, b)));
  for (double& v : product.values) v *= alpha;
  return GiveNarrowed(call, 0, {call.TypeOf(0), product.shape}, product.values);
}

Status RunFusedGemm(OperatorCall& call) {
  AG_TRY(call.CheckInputs(2, 3));
  AG_TRY(CheckPair(call));
  for (const size_t i : {0, 1}) AG_TRY(call.CheckRank(i, 2));
  ActivationScales scales;
  if (call.HasAttribute("activation_alpha")) {
    scales.alpha = {static_cast<float>(call.Float("activation_alpha", 0))};
  }
  if (call.HasAttribute("activation_beta")) {
    scales.beta = {static_cast<float>(call.Float("activation_beta", 0))};
  }
  call.Ignore("activation_gamma");  // Of functions that no optimizer fuses.
  AG_LET(const Activation activation, FusedActivation(call, std::move(scales)));
  const double alpha = call.Float("alpha", 1), beta = call.Float("beta", 1);
  const SideForm a{.rows = call.Int("transA", 0) != 0}, b{.rows = call.Int("transB", 0) != 0};
  AG_LET(Matrix product,
         MultiplyMatrices(call, call.TypeOf(0), SideOf(call, 0, a), SideOf(call, 1, b)));
  Doubles more(product.values.size());
  if (call.Has(2)) {
    AG_LET(more, SpreadOf(call, 2, product.shape));
  }
  for (size_t i = 0; i < more.size(); ++i) {
    product.values[i] = activation(alpha * product.values[i] + beta * more[i]);
  }
  return GiveNarrowed(call, 0, {call.TypeOf(0), product.shape}, product.values);
}

// Which operands scale and shift rows (`beta` may be absent), and whether results 1 and 2 are the
// means and inverse deviations of the rows.
struct RowForms {
  RowNorm norm = RowNorm::kDeviation;
  size_t gamma = 0;
  std::optional<size_t> beta;
  bool moments = false;
};

// Normalizes the rows of `sum`, scales and shifts them, and makes result 0.
Status GiveNormalized(OperatorCall& call, const Shape& shape, Doubles sum, const RowForms& form) {
  AG_LET(const Doubles scale, SpreadOf(call, form.gamma, shape));
  Doubles shift(sum.size());
  if (form.beta.has_value() && call.Has(*form.beta)) {
    AG_LET(shift, SpreadOf(call, *form.beta, shape));
  }
  RowMoments of_rows = NormalizeRows(sum, shape.back(), call.Float("epsilon", 1e-12), form.norm);
  for (size_t i = 0; i < sum.size(); ++i) sum[i] = sum[i] * scale[i] + shift[i];
  Shape reduced = shape;
  reduced.back() = 1;
  if (form.moments) {
    const TensorType type{DType::kFloat32, reduced};
    AG_TRY(GiveMoments(call, 1, type, std::move(of_rows.means)));
    AG_TRY(GiveMoments(call, 2, type, std::move(of_rows.inverse_deviations)));
  }
  return GiveNarrowed(call, 0, {call.TypeOf(form.gamma), shape}, sum);
}

// Operands: x, skip, gamma, beta (only with means), bias. Result 3 is the sum that is normalized.
template <RowNorm norm>
Status RunSkipNormalization(OperatorCall& call) {
  constexpr bool kHasBeta = norm == RowNorm::kDeviation;
  constexpr size_t kBias = kHasBeta ? 4 : 3;
  AG_TRY(call.CheckInputs(3, kBias + 1));
  if (!IsFloat(call.TypeOf(0))) return RefuseType(call.TypeOf(0));
  const Shape& shape = call.ShapeOf(0);
  if (shape.empty()) return Err(StatusCode::kInvalidArgument, "expected rank 1 or more");
  Doubles sum = call.In(0).ToDoubles();
  for (const size_t i : {size_t{1}, kBias}) {
    if (!call.Has(i)) continue;
    AG_LET(const Doubles more, SpreadOf(call, i, shape));
    for (size_t e = 0; e < sum.size(); ++e) sum[e] += more[e];
  }
  if (call.Wants(3)) AG_TRY(GiveNarrowed(call, 3, call.Type(0), sum));
  const auto beta = kHasBeta ? std::optional<size_t>(3) : std::nullopt;
  return GiveNormalized(call, shape, std::move(sum), {norm, 2, beta, true});
}

// Adds rows of the table in operand `table`, one for each id. kOutOfRange: it has no such row.
Status AddRowsOf(const OperatorCall& call, size_t table, const Ints& ids, int64_t size,
                 Doubles& sum) {
  AG_TRY(call.CheckRank(table, 2));
  const int64_t rows = call.ShapeOf(table)[0];
  if (call.ShapeOf(table)[1] != size) {
    return Err(StatusCode::kInvalidArgument, "input {}: expected rows of {}, got {}", table, size,
               call.Type(table).ToString());
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= rows) {
      return Err(StatusCode::kOutOfRange, "input {}: row {} of {}", table, ids[i], rows);
    }
    for (int64_t e = 0; e < size; ++e) {
      sum[i * static_cast<size_t>(size) + static_cast<size_t>(e)] +=
          call.In(table).At(ids[i] * size + e);
    }
  }
  return OkStatus();
}

// Returns the ids of operand `i` for each of `places` [batch, steps]; a batch of 1 repeats.
StatusOr<Ints> IdsFor(const OperatorCall& call, size_t i, const Shape& places) {
  AG_LET(const Ints ids, call.IntsAt(i));
  const Shape& own = call.ShapeOf(i);
  if (own.size() != 2 || own[1] != places[1] || (own[0] != places[0] && own[0] != 1)) {
    return Err(StatusCode::kInvalidArgument, "input {}: expected {}, got {}", i,
               ShapeToString(places), call.Type(i).ToString());
  }
  Ints all;
  for (int64_t at = 0; at < NumElements(places); ++at) {
    all.push_back(ids[static_cast<size_t>(at) % ids.size()]);
  }
  return all;
}

// Operands: word ids, segment ids, tables of words, positions and segments, gamma, beta, a mask,
// position ids. Results: the normalized sum, the number of words that the mask keeps of each batch
// item, the sum.
Status RunEmbedLayerNormalization(OperatorCall& call) {
  AG_TRY(call.CheckInputs(1, 9));
  for (const size_t i : {2, 3, 5, 6}) {
    if (!call.Has(i)) return Err(StatusCode::kInvalidArgument, "input {} is missing", i);
  }
  call.Ignore("mask_index_type");
  AG_TRY(call.CheckRank(0, 2));
  AG_TRY(call.CheckRank(2, 2));
  const Shape places = call.ShapeOf(0);
  const int64_t size = call.ShapeOf(2)[1];
  const Shape shape = {places[0], places[1], size};
  const DType dtype = call.TypeOf(2);
  if (!IsFloat(dtype)) return RefuseType(dtype);
  AG_TRY(call.MakeBytes(0, {dtype, shape}));  // Checks the size.
  Doubles sum(static_cast<size_t>(NumElements(shape)));
  AG_LET(const Ints words, call.IntsAt(0));
  AG_TRY(AddRowsOf(call, 2, words, size, sum));
  Ints positions;
  for (int64_t at = 0; at < NumElements(places); ++at) positions.push_back(at % places[1]);
  if (call.Has(8)) {
    AG_LET(positions, IdsFor(call, 8, places));
  }
  AG_TRY(AddRowsOf(call, 3, positions, size, sum));
  if (call.Has(1) && call.Has(4)) {
    AG_LET(const Ints segments, IdsFor(call, 1, places));
    AG_TRY(AddRowsOf(call, 4, segments, size, sum));
  }
  if (call.Wants(1)) {
    AG_LET(int32_t * kept, call.Make<int32_t>(1, {places[0]}));
    Ints mask(call.Has(7) ? 0 : words.size());
    if (call.Has(7)) {
      AG_LET(mask, IdsFor(call, 7, places));
    }
    for (size_t at = 0; at < mask.size(); ++at) {
      kept[at / static_cast<size_t>(places[1])] += mask[at] == 1 ? 1 : 0;
    }
  }
  if (call.Wants(2)) AG_TRY(GiveNarrowed(call, 2, {dtype, shape}, sum));
  return GiveNormalized(call, shape, std::move(sum), {.gamma = 5, .beta = 6});
}

// Operands: x [N,C,...], or [N,...,C] with channels_last, gamma and beta by channel.
Status RunGroupNorm(OperatorCall& call) {
  AG_TRY(call.CheckInputs(3, 3));
  if (!IsFloat(call.TypeOf(0))) return RefuseType(call.TypeOf(0));
  const bool last = call.Int("channels_last", 1) != 0, silu = call.Int("activation", 0) != 0;
  const int64_t groups = call.Int("groups", 0);
  if (call.Rank(0) < 2) return Err(StatusCode::kInvalidArgument, "expected rank 2 or more");
  Matrix x{call.ShapeOf(0), call.In(0).ToDoubles()};
  if (last) x = ChannelsFirst(x);
  const int64_t channels = x.shape[1];
  for (const size_t i : {1, 2}) {
    if (groups >= 1 && channels % groups == 0 && call.ShapeOf(i) == Shape{channels}) continue;
    return Err(StatusCode::kInvalidArgument, "{} groups of {}: {} does not fit", groups,
               call.Type(0).ToString(), call.Type(i).ToString());
  }
  const Doubles gamma = call.In(1).ToDoubles(), beta = call.In(2).ToDoubles();
  const int64_t inside = NumElements(std::span(x.shape).subspan(2));
  NormalizeRows(x.values, channels / groups * inside, call.Float("epsilon", 1e-5),
                RowNorm::kDeviation);
  for (size_t i = 0; i < x.values.size(); ++i) {
    const size_t c = i / static_cast<size_t>(inside) % gamma.size();
    const double v = x.values[i] * gamma[c] + beta[c];
    x.values[i] = silu ? v * LogisticOf(v) : v;
  }
  if (last) x = ChannelsLast(x);
  return GiveNarrowed(call, 0, call.Type(0), x.values);
}

// Softmax over the axes from `axis` on of x + bias.
Status RunBiasSoftmax(OperatorCall& call) {
  AG_TRY(call.CheckInputs(2, 2));
  if (!IsFloat(call.TypeOf(0))) return RefuseType(call.TypeOf(0));
  call.Ignore("is_inner_broadcast");  // The shapes say it.
  AG_LET(const int64_t axis, call.Axis(1));
  AG_LET(Doubles values, SpreadOf(call, 1, call.ShapeOf(0)));
  const Doubles x = call.In(0).ToDoubles();
  const auto size = static_cast<size_t>(ElementsOf(call.ShapeOf(0), axis, call.Rank(0)));
  for (size_t i = 0; i < values.size(); ++i) values[i] += x[i];
  for (size_t first = 0; first < values.size(); first += size) {
    const std::span<double> row(values.data() + first, size);
    const double most = *std::ranges::max_element(row);
    double sum = 0;
    for (double& v : row) sum += v = std::exp(v - most);
    for (double& v : row) v /= sum;
  }
  return GiveNarrowed(call, 0, call.Type(0), values);
}

// Replaces the n x n matrix by its inverse, by elimination with the largest pivot; of a matrix
// without one by NaN.
void Invert(std::span<double> m, size_t n) {
  Doubles inverse(n * n);
  for (size_t i = 0; i < n; ++i) inverse[i * n + i] = 1;
  for (size_t c = 0; c < n; ++c) {
    size_t pivot = c;
    for (size_t r = c + 1; r < n; ++r) {
      if (std::fabs(m[r * n + c]) > std::fabs(m[pivot * n + c])) pivot = r;
    }
    const double by = m[pivot * n + c];
    if (by == 0 || std::isnan(by)) {
      std::ranges::fill(m, std::numeric_limits<double>::quiet_NaN());
      return;
    }
    for (size_t k = 0; k < n; ++k) {
      std::swap(m[pivot * n + k], m[c * n + k]);
      std::swap(inverse[pivot * n + k], inverse[c * n + k]);
      m[c * n + k] /= by;
      inverse[c * n + k] /= by;
    }
    for (size_t r = 0; r < n; ++r) {
      const double less = m[r * n + c];
      for (size_t k = 0; r != c && k < n; ++k) {
        m[r * n + k] -= less * m[c * n + k];
        inverse[r * n + k] -= less * inverse[c * n + k];
      }
    }
  }
  std::ranges::copy(inverse, m.begin());
}

Status RunInverse(OperatorCall& call) {
  AG_TRY(call.CheckInputs(1, 1));
  if (!IsFloat(call.TypeOf(0))) return RefuseType(call.TypeOf(0));
  const Shape& shape = call.ShapeOf(0);
  if (shape.size() < 2 || shape.back() != shape[shape.size() - 2]) {
    return Err(StatusCode::kInvalidArgument, "expected square matrices, got {}",
               call.Type(0).ToString());
  }
  const auto n = static_cast<size_t>(shape.back());
  Doubles values = call.In(0).ToDoubles();
  for (size_t first = 0; first < values.size(); first += n * n) {
    Invert(std::span(values).subspan(first, n * n), n);
  }
  return GiveNarrowed(call, 0, call.Type(0), values);
}

// The opset whose form com.microsoft's operators of the same name have.
constexpr int64_t kSameForm = 13;

Status RunTriluAs(OperatorCall& call) { return RunAs(call, "Trilu", 14); }
Status RunPadAs(OperatorCall& call) { return RunAs(call, "Pad", kSameForm); }
Status RunRangeAs(OperatorCall& call) { return RunAs(call, "Range", kSameForm); }
Status RunGatherNdAs(OperatorCall& call) { return RunAs(call, "GatherND", kSameForm); }

// Results: the values in the order of their first places, the place of each element among them, and
// their counts.
Status RunUniqueInOrder(OperatorCall& call) {
  AG_TRY(call.CheckInputs(1, 1));
  AG_TRY(call.CheckRank(0, 1));
  OnnxNode node = InnerNode(call, "Unique");
  SetAttribute(node, "sorted", 0);
  AG_LET(std::vector<Tensor> results, RunInner(call, std::move(node), kSameForm, {&call.In(0)}, 4));
  call.Give(0, std::move(results[0]));
  if (call.Wants(1)) call.Give(1, std::move(results[2]));
  if (call.Wants(2)) call.Give(2, std::move(results[3]));
  return OkStatus();
}

Status RunExpandDims(OperatorCall& call) {
  AG_TRY(call.CheckInputs(2, 2));
  AG_LET(int64_t axis, call.IntAt(1));
  AG_LET(axis, ResolveAxis(axis, call.Rank(0) + 1));
  TensorType type = call.Type(0);
  type.shape.insert(type.shape.begin() + axis, 1);
  AG_LET(char* to, call.MakeBytes(0, std::move(type)));
  std::ranges::copy(call.In(0).bytes(), to);
  return OkStatus();
}

}  // namespace

std::span<const OperatorRow> MicrosoftOperators() {
  static constexpr OperatorRow kRows[] = {
      {"com.microsoft.Gelu", RunBiased<GeluOf>},
      {"com.microsoft.BiasGelu", RunBiased<GeluOf>},
      {"com.microsoft.FastGelu", RunBiased<FastGeluOf>},
      {"com.microsoft.QuickGelu", RunQuickGelu},
      {"com.microsoft.BiasSplitGelu", RunBiasSplitGelu},
      {"com.microsoft.FusedConv", RunFusedConv},
      {"com.microsoft.FusedMatMul", RunFusedMatMul},
      {"com.microsoft.TransposeMatMul", RunFusedMatMul},
      {"com.microsoft.FusedGemm", RunFusedGemm},
      {"com.microsoft.SkipLayerNormalization", RunSkipNormalization<RowNorm::kDeviation>},
      {"com.microsoft.SkipSimplifiedLayerNormalization",
       RunSkipNormalization<RowNorm::kMeanSquare>},
      {"com.microsoft.EmbedLayerNormalization", RunEmbedLayerNormalization},
      {"com.microsoft.GroupNorm", RunGroupNorm},
      {"com.microsoft.BiasSoftmax", RunBiasSoftmax},
      {"com.microsoft.Inverse", RunInverse},
      {"com.microsoft.Trilu", RunTriluAs},
      {"com.microsoft.Pad", RunPadAs, FromOperands({1})},
      {"com.microsoft.Range", RunRangeAs, ResultSizes::kFromValues},
      {"com.microsoft.GatherND", RunGatherNdAs},
      {"com.microsoft.Unique", RunUniqueInOrder, ResultSizes::kFromValues},
      {"com.microsoft.ExpandDims", RunExpandDims, FromOperands({1})},
  };
  return kRows;
}

}  // namespace ag::onnx_operators
