// Quantized operators of domain com.microsoft.
#include <algorithm>
#include <cmath>

#include "graph/onnx/operators/inner.h"
#include "graph/onnx/operators/layout.h"
#include "graph/onnx/operators/matrix.h"
#include "graph/onnx/operators/quantize.h"
#include "graph/onnx/operators/wide.h"
#include "graph/shapes.h"

namespace ag::onnx_operators {
namespace {

using Doubles = std::vector<double>;

// Where a quantized tensor is among the operands: its numbers, their scale and their zero point.
struct QuantizedAt {
  size_t numbers = 0, scale = 1, zero = 2;
};

// Returns (number - zero point) * scale as f32 holds it, with one scale for all or one for each
// place of `axis`.
StatusOr<Doubles> RealNumbers(const OperatorCall& call, const QuantizedAt& at, int64_t axis) {
  AG_LET(Doubles values, WithoutZero(call, at.numbers, at.zero, axis));
  const Shape& shape = call.ShapeOf(at.numbers);
  AG_LET(const PerElement scale, PerElement::Of(call, at.scale, shape, axis, 0, 1));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(values[i] * scale.at(i));
  return values;
}

// Makes result 0 of the values, rounded to f32 and quantized, in the type of their zero point;
// without one in that of operand 0.
Status GiveQuantized(OperatorCall& call, const Shape& shape, Doubles values, size_t scale,
                     size_t zero) {
  const TensorType type{call.TypeOf(call.Has(zero) ? zero : 0), shape};
  AG_LET(const QuantizedRange range, RangeOf(type.dtype));
  for (const size_t i : {scale, zero}) {
    if (!call.Has(i) || call.Type(i).NumElements() == 1) continue;
    return Err(StatusCode::kInvalidArgument, "input {}: expected one element, got {}", i,
               call.Type(i).ToString());
  }
  const double by = call.NumberAt(scale), shift = call.Has(zero) ? call.NumberAt(zero) : 0;
  for (double& v : values)
    v = Quantized(static_cast<float>(static_cast<float>(v) / by), shift, range);
  return GiveNarrowed(call, 0, type, values);
}

// Quantizes function(x). Operands: x, its scale and zero point, those of the result.
template <class F>
Status MapQuantized(OperatorCall& call, F&& function) {
  AG_TRY(call.CheckInputs(2, 5));
  if (!call.Has(3)) return Err(StatusCode::kInvalidArgument, "input 3 is missing");
  AG_LET(Doubles values, RealNumbers(call, {}, 0));
  for (double& v : values) v = function(v);
  return GiveQuantized(call, call.ShapeOf(0), std::move(values), 3, 4);
}

Status RunQLinearSigmoid(OperatorCall& call) {
  return MapQuantized(call, [](double v) { return 1 / (1 + std::exp(-v)); });
}

Status RunQLinearLeakyRelu(OperatorCall& call) {
  const double alpha = call.Float("alpha", 0.01F);
  return MapQuantized(call, [alpha](double v) { return v < 0 ? alpha * v : v; });
}

// Operands: a, b and the result, each with its scale and zero point.
template <class F>
Status CombineQuantized(OperatorCall& call, F&& function) {
  AG_TRY(call.CheckInputs(2, 8));
  for (const size_t i : {3, 4, 6}) {
    if (!call.Has(i)) return Err(StatusCode::kInvalidArgument, "input {} is missing", i);
  }
  AG_TRY(call.CheckType(3, call.TypeOf(0)));
  AG_LET(const Shape shape, BroadcastShapes(call.ShapeOf(0), call.ShapeOf(3)));
  AG_TRY(call.MakeBytes(0, {call.TypeOf(0), shape}));  // Checks the size.
  AG_LET(const Doubles a, RealNumbers(call, {}, 0));
  AG_LET(const Doubles b, RealNumbers(call, {3, 4, 5}, 0));
  Doubles values;
  Walk<2>(
      shape, {BroadcastStrides(call.ShapeOf(0), shape), BroadcastStrides(call.ShapeOf(3), shape)},
      [&](const std::array<int64_t, 2>& at) {
        values.push_back(function(a[static_cast<size_t>(at[0])], b[static_cast<size_t>(at[1])]));
      });
  return GiveQuantized(call, shape, std::move(values), 6, 7);
}

Status RunQLinearAdd(OperatorCall& call) {
  return CombineQuantized(call, [](double a, double b) { return a + b; });
}
Status RunQLinearMul(OperatorCall& call) {
  return CombineQuantized(call, [](double a, double b) { return a * b; });
}

// Where the channels are: axis 1, or the last one.
enum class Channels : uint8_t { kFirst, kLast };

// Runs an operator of the default domain on real numbers of operand 0 and quantizes its result.
Status QuantizeResultOf(OperatorCall& call, OnnxNode node, int64_t opset, Channels channels) {
  AG_TRY(call.CheckInputs(2, 5));
  if (!call.Has(3)) return Err(StatusCode::kInvalidArgument, "input 3 is missing");
  if (channels == Channels::kLast && call.Rank(0) < 2) {
    return Err(StatusCode::kInvalidArgument, "expected rank 2 or more");
  }
  AG_LET(Doubles values, RealNumbers(call, {}, 0));
  Matrix x{call.ShapeOf(0), std::move(values)};
  if (channels == Channels::kLast) x = ChannelsFirst(x);
  const Tensor real = Tensor::FromDoubles({DType::kFloat32, x.shape}, x.values);
  AG_LET(const std::vector<Tensor> results, RunInner(call, std::move(node), opset, {&real}));
  Matrix y{results[0].type().shape, results[0].ToDoubles()};
  if (channels == Channels::kLast) y = ChannelsLast(y);
  return GiveQuantized(call, y.shape, std::move(y.values), 3, 4);
}

Channels ChannelsOf(OperatorCall& call) {
  return call.Int("channels_last", 0) != 0 ? Channels::kLast : Channels::kFirst;
}

template <bool global>
Status RunQLinearAveragePool(OperatorCall& call) {
  const Channels channels = ChannelsOf(call);
  OnnxNode node = InnerNode(call, global ? "GlobalAveragePool" : "AveragePool", {"channels_last"});
  return QuantizeResultOf(call, std::move(node), 11, channels);
}

Status RunQLinearReduceMean(OperatorCall& call) {
  return QuantizeResultOf(call, InnerNode(call, "ReduceMean"), 13, Channels::kFirst);
}

// Attribute opset says the form of Softmax: since 13 over one axis, before over all from it on.
Status RunQLinearSoftmax(OperatorCall& call) {
  AG_TRY(call.CheckInputs(2, 5));
  if (!call.Has(3)) return Err(StatusCode::kInvalidArgument, "input 3 is missing");
  AG_LET(const int64_t axis, call.Axis(-1));
  AxisView view = ViewAlong(call.ShapeOf(0), axis);
  if (call.Int("opset", 13) < 13) view = {view.outer, view.size * view.inner, 1};
  AG_LET(Doubles values, RealNumbers(call, {}, 0));
  for (int64_t line = 0; !values.empty() && line < view.outer * view.inner; ++line) {
    const auto at = [&](int64_t i) -> double& {
      return values[static_cast<size_t>(view.At(line / view.inner, i, line % view.inner))];
    };
    double most = at(0), sum = 0;
    for (int64_t i = 0; i < view.size; ++i) most = std::max(most, at(i));
    for (int64_t i = 0; i < view.size; ++i) sum += at(i) = std::exp(at(i) - most);
    for (int64_t i = 0; i < view.size; ++i) at(i) /= sum;
  }
  return GiveQuantized(call, call.ShapeOf(0), std::move(values), 3, 4);
}

// Operands: scale and zero point of the result, then each tensor with its own.
Status RunQLinearConcat(OperatorCall& call) {
  if (call.size() < 5 || call.size() % 3 != 2) {
    return Err(StatusCode::kInvalidArgument, "expected 2 inputs and 3 for each tensor, got {}",
               call.size());
  }
  AG_TRY(call.CheckInputs(call.size(), call.size()));
  std::vector<Tensor> parts;
  for (size_t i = 2; i < call.size(); i += 3) {
    AG_LET(const Doubles values, RealNumbers(call, {i, i + 1, i + 2}, 0));
    parts.push_back(Tensor::FromDoubles({DType::kFloat64, call.ShapeOf(i)}, values));
  }
  std::vector<const Tensor*> inputs;
  for (const Tensor& part : parts) inputs.push_back(&part);
  AG_LET(const std::vector<Tensor> joined, RunInner(call, InnerNode(call, "Concat"), 13, inputs));
  return GiveQuantized(call, joined[0].type().shape, joined[0].ToDoubles(), 0, 1);
}

// Operands: a condition, x, y and the result, each of the latter with its scale and zero point.
Status RunQLinearWhere(OperatorCall& call) {
  AG_TRY(call.CheckInputs(9, 9));
  AG_LET(const Doubles x, RealNumbers(call, {1, 2, 3}, 0));
  AG_LET(const Doubles y, RealNumbers(call, {4, 5, 6}, 0));
  const Tensor real_x = Tensor::FromDoubles({DType::kFloat64, call.ShapeOf(1)}, x);
  const Tensor real_y = Tensor::FromDoubles({DType::kFloat64, call.ShapeOf(4)}, y);
  AG_LET(const std::vector<Tensor> chosen,
         RunInner(call, InnerNode(call, "Where"), 13, {&call.In(0), &real_x, &real_y}));
  return GiveQuantized(call, chosen[0].type().shape, chosen[0].ToDoubles(), 7, 8);
}

// Runs an operator of the default domain whose operand 0 has its channels last.
Status RunChannelsLast(OperatorCall& call, OnnxNode node, int64_t opset) {
  AG_TRY(call.CheckInputs(1, call.size()));
  if (call.Rank(0) < 2) return Err(StatusCode::kInvalidArgument, "expected rank 2 or more");
  const Matrix x = ChannelsFirst({call.ShapeOf(0), call.In(0).ToDoubles()});
  const Tensor first = Tensor::FromDoubles({call.TypeOf(0), x.shape}, x.values);
  std::vector<const Tensor*> inputs = {&first};
  for (size_t i = 1; i < call.size(); ++i) inputs.push_back(call.Has(i) ? &call.In(i) : nullptr);
  AG_LET(const std::vector<Tensor> results, RunInner(call, std::move(node), opset, inputs));
  const Matrix y = ChannelsLast({results[0].type().shape, results[0].ToDoubles()});
  return GiveNarrowed(call, 0, {results[0].type().dtype, y.shape}, y.values);
}

Status RunNhwcMaxPool(OperatorCall& call) {
  return RunChannelsLast(call, InnerNode(call, "MaxPool"), 12);
}

Status RunQLinearConvAnyLayout(OperatorCall& call) {
  const Channels channels = ChannelsOf(call);
  OnnxNode node = InnerNode(call, "QLinearConv", {"channels_last"});
  if (channels == Channels::kLast) return RunChannelsLast(call, std::move(node), 10);
  node.outputs = call.node().outputs;
  std::vector<const Tensor*> inputs;
  for (size_t i = 0; i < call.size(); ++i) inputs.push_back(call.Has(i) ? &call.In(i) : nullptr);
  AG_LET(call.results(), RunInner(call, std::move(node), 10, inputs));
  return OkStatus();
}

// Returns a quantized operand as a tensor of f32.
StatusOr<Tensor> RealTensor(const OperatorCall& call, const QuantizedAt& at, int64_t axis) {
  AG_LET(const Doubles values, RealNumbers(call, at, axis));
  return Tensor::FromDoubles({DType::kFloat32, call.ShapeOf(at.numbers)}, values);
}

// Runs another operator of com.microsoft with the attributes and results of the call.
Status RunFloating(OperatorCall& call, const char* name, const std::vector<const Tensor*>& inputs) {
  OnnxNode node = InnerNode(call, name);
  node.domain = call.node().domain;
  node.outputs = call.node().outputs;
  AG_LET(call.results(), RunInner(call, std::move(node), call.opset(), inputs));
  return OkStatus();
}

// Attention with quantized x and weights. Operands: x, weights, biases, both scales, a mask, both
// zero points, a cache.
Status RunQAttention(OperatorCall& call) {
  AG_TRY(call.CheckInputs(5, 9));
  AG_LET(const Tensor x, RealTensor(call, {0, 3, 6}, -1));
  AG_LET(const Tensor w, RealTensor(call, {1, 4, 7}, -1));
  return RunFloating(call, "Attention",
                     {&x, &w, &call.In(2), call.Has(5) ? &call.In(5) : nullptr,
                      call.Has(8) ? &call.In(8) : nullptr});
}

// EmbedLayerNormalization with quantized tables, gains and shifts (operands 2 to 6), whose scales
// are operands 8 to 12 and whose zero points are operands 13 to 17.
Status RunQEmbedLayerNormalization(OperatorCall& call) {
  AG_TRY(call.CheckInputs(1, 18));
  std::vector<Tensor> real(5);
  std::vector<const Tensor*> inputs = {&call.In(0), call.Has(1) ? &call.In(1) : nullptr};
  for (size_t i = 0; i < real.size(); ++i) {
    inputs.push_back(nullptr);
    if (!call.Has(2 + i)) continue;
    if (!call.Has(8 + i)) return Err(StatusCode::kInvalidArgument, "input {} is missing", 8 + i);
    AG_LET(real[i], RealTensor(call, {2 + i, 8 + i, 13 + i}, 0));
    inputs.back() = &real[i];
  }
  inputs.push_back(call.Has(7) ? &call.In(7) : nullptr);
  return RunFloating(call, "EmbedLayerNormalization", inputs);
}

// Adds operand `bias`, if there is one, to a product and makes result 0 in `dtype`.
Status GiveProduct(OperatorCall& call, DType dtype, Matrix product, size_t bias) {
  if (call.Has(bias)) {
    AG_LET(const Doubles more, SpreadOf(call, bias, product.shape));
    for (size_t i = 0; i < more.size(); ++i) product.values[i] += more[i];
  }
  return GiveNarrowed(call, 0, {dtype, product.shape}, product.values);
}

// Operands: a, b, their scales, their zero points, a bias.
Status RunMatMulIntegerToFloat(OperatorCall& call) {
  AG_TRY(call.CheckInputs(4, 7));
  AG_LET(Doubles a, RealNumbers(call, {0, 2, 4}, RowsAxis(call, 0)));
  AG_LET(Doubles b, RealNumbers(call, {1, 3, 5}, -1));
  const DType dtype = call.TypeOf(2);
  AG_LET(Matrix product, MultiplyMatrices(call, dtype, {call.ShapeOf(0), std::move(a)},
                                          {call.ShapeOf(1), std::move(b)}));
  return GiveProduct(call, dtype, std::move(product), 6);
}

// Operands: a, which is quantized here, b with its scale and zero point, a bias.
Status RunDynamicQuantizeMatMul(OperatorCall& call) {
  AG_TRY(call.CheckInputs(3, 5));
  AG_TRY(call.CheckType(0, DType::kFloat32));
  Doubles a = call.In(0).ToDoubles();
  const DynamicScale to = DynamicScaleOf(a);
  for (double& v : a) v = to.Back(v);
  AG_LET(Doubles b, RealNumbers(call, {1, 2, 3}, -1));
  AG_LET(Matrix product, MultiplyMatrices(call, DType::kFloat32, {call.ShapeOf(0), std::move(a)},
                                          {call.ShapeOf(1), std::move(b)}));
  return GiveProduct(call, DType::kFloat32, std::move(product), 4);
}

// Operands: a and b, each with its scale and zero point, a bias of integers with the scale of both,
// scale and zero point of the result; without the latter it is not quantized.
Status RunQGemm(OperatorCall& call) {
  AG_TRY(call.CheckInputs(5, 9));
  for (const size_t i : {0, 3}) AG_TRY(call.CheckRank(i, 2));
  const bool flips_a = call.Int("transA", 0) != 0, flips_b = call.Int("transB", 0) != 0;
  const double alpha = call.Float("alpha", 1);
  AG_LET(Doubles a, RealNumbers(call, {0, 1, 2}, flips_a ? 1 : 0));
  AG_LET(Doubles b, RealNumbers(call, {3, 4, 5}, flips_b ? 0 : 1));
  Matrix left{call.ShapeOf(0), std::move(a)}, right{call.ShapeOf(3), std::move(b)};
  if (flips_a) left = Permuted(left, {1, 0});
  if (flips_b) right = Permuted(right, {1, 0});
  const DType dtype = call.Has(7) ? call.TypeOf(0) : DType::kFloat32;
  AG_LET(Matrix product, MultiplyMatrices(call, dtype, left, right));
  AG_LET(const PerElement by_b, PerElement::Of(call, 4, product.shape, 1, 0, 1));
  Doubles more(product.values.size());
  if (call.Has(6)) {
    AG_LET(more, SpreadOf(call, 6, product.shape));
  }
  for (size_t i = 0; i < more.size(); ++i) {
    product.values[i] = alpha * (product.values[i] + more[i] * call.NumberAt(1) * by_b.at(i));
  }
  if (!call.Has(7)) return GiveNarrowed(call, 0, {dtype, product.shape}, product.values);
  return GiveQuantized(call, product.shape, std::move(product.values), 7, 8);
}

Status RunQuantizeLinearAs(OperatorCall& call) { return RunAs(call, "QuantizeLinear", 21); }
Status RunDequantizeLinearAs(OperatorCall& call) { return RunAs(call, "DequantizeLinear", 21); }

// Unsigned numbers of a few bits each, packed from the lowest bit of the first byte on.
struct PackedBits {
  std::span<const uint8_t> bytes;
  int64_t bits = 8;

  double At(int64_t first_byte, int64_t i) const {
    const int64_t at = first_byte * 8 + i * bits;
    const auto byte = static_cast<size_t>(at / 8);
    unsigned two = bytes[byte];
    if (byte + 1 < bytes.size()) two |= static_cast<unsigned>(bytes[byte + 1]) << 8;
    return (two >> (at % 8)) & ((1U << bits) - 1);
  }
};

// Weights [columns, depth] in blocks along the depth, each with its scale and zero point.
struct BlockedWeights {
  int64_t depth = 0, columns = 0, bits = 4, block = 32;

  int64_t blocks() const { return depth / block + (depth % block == 0 ? 0 : 1); }
  int64_t BlockBytes() const { return (block * bits + 7) / 8; }
  int64_t ZeroBytes() const { return (blocks() * bits + 7) / 8; }  // Of a column.
};

Status CheckBlocked(const OperatorCall& call, const BlockedWeights& w) {
  constexpr int64_t kMost = int64_t{1} << 30;
  for (const int64_t size : {w.depth, w.columns, w.block}) {
    if (size < 1 || size > kMost) {
      return Err(StatusCode::kInvalidArgument, "K {}, N {}, block_size {}", w.depth, w.columns,
                 w.block);
    }
  }
  if (w.bits < 1 || w.bits > 8) {
    return Err(StatusCode::kInvalidArgument, "weights of {} bits", w.bits);
  }
  AG_TRY(call.CheckType(1, DType::kUInt8));
  const bool packed = call.Has(3) && call.TypeOf(3) == DType::kUInt8;
  const int64_t scales = w.columns * w.blocks();
  const int64_t expected[] = {w.columns * w.blocks() * w.BlockBytes(), scales,
                              packed ? w.columns * w.ZeroBytes() : scales, w.depth};
  for (size_t i = 1; i < 5; ++i) {
    if (!call.Has(i) || call.Type(i).NumElements() == expected[i - 1]) continue;
    return Err(StatusCode::kInvalidArgument, "input {}: expected {} elements, got {}", i,
               expected[i - 1], call.Type(i).ToString());
  }
  return OkStatus();
}

// Returns the weights as numbers [depth, columns].
StatusOr<Matrix> UnpackWeights(const OperatorCall& call, const BlockedWeights& w) {
  AG_TRY(CheckBlocked(call, w));
  const PackedBits numbers{call.In(1).As<uint8_t>(), w.bits};
  const Doubles scales = call.In(2).ToDoubles();
  const bool packed = call.Has(3) && call.TypeOf(3) == DType::kUInt8;
  Ints groups;  // The block of scales of each place along the depth.
  for (int64_t k = 0; k < w.depth; ++k) groups.push_back(k / w.block);
  if (call.Has(4)) {
    AG_LET(groups, call.IntsAt(4));
  }
  Matrix weights{{w.depth, w.columns}, Doubles(static_cast<size_t>(w.depth * w.columns))};
  for (int64_t n = 0; n < w.columns; ++n) {
    for (int64_t k = 0; k < w.depth; ++k) {
      const int64_t group = groups[static_cast<size_t>(k)];
      if (group < 0 || group >= w.blocks()) {
        return Err(StatusCode::kOutOfRange, "input 4: block {} of {}", group, w.blocks());
      }
      const int64_t scale = n * w.blocks() + group;
      double zero = static_cast<double>(1 << (w.bits - 1));
      if (packed) {
        zero = PackedBits{call.In(3).As<uint8_t>(), w.bits}.At(n * w.ZeroBytes(), group);
      } else if (call.Has(3)) {
        zero = call.NumberAt(3, scale);
      }
      const int64_t first = (n * w.blocks() + k / w.block) * w.BlockBytes();
      weights.values[static_cast<size_t>(k * w.columns + n)] =
          (numbers.At(first, k % w.block) - zero) * scales[static_cast<size_t>(scale)];
    }
  }
  return weights;
}

// Operands: a, packed weights, scales, zero points (packed too, or of a's type), blocks of the
// places along the depth, a bias. Weights without elements are zeros.
Status RunMatMulNBits(OperatorCall& call) {
  AG_TRY(call.CheckInputs(3, 6));
  if (!IsFloat(call.TypeOf(0))) return RefuseType(call.TypeOf(0));
  call.Ignore("accuracy_level");
  if (call.Int("weight_prepacked", 0) != 0) {
    return Err(StatusCode::kUnimplemented, "weights in a layout of one device are not supported");
  }
  const BlockedWeights form{call.Int("K", 0), call.Int("N", 0), call.Int("bits", 4),
                            call.Int("block_size", 0)};
  Matrix weights;
  if (call.Type(1).NumElements() == 0 && form.depth > 0 && form.columns > 0) {
    Shape shape = call.ShapeOf(0);
    if (shape.empty() || shape.back() != form.depth) {
      return Err(StatusCode::kInvalidArgument, "{} does not end with K = {}",
                 call.Type(0).ToString(), form.depth);
    }
    shape.back() = form.columns;
    AG_TRY(call.MakeBytes(0, {call.TypeOf(0), shape}));  // Checks the size.
    Matrix zeros{shape, Doubles(static_cast<size_t>(NumElements(shape)))};
    return GiveProduct(call, call.TypeOf(0), std::move(zeros), 5);
  }
  AG_LET(weights, UnpackWeights(call, form));
  AG_LET(Matrix product, MultiplyMatrices(call, call.TypeOf(0),
                                          {call.ShapeOf(0), call.In(0).ToDoubles()}, weights));
  return GiveProduct(call, call.TypeOf(0), std::move(product), 5);
}

}  // namespace

std::span<const OperatorRow> MicrosoftQuantOperators() {
  static constexpr OperatorRow kRows[] = {
      {"com.microsoft.QuantizeLinear", RunQuantizeLinearAs},
      {"com.microsoft.DequantizeLinear", RunDequantizeLinearAs},
      {"com.microsoft.QLinearAdd", RunQLinearAdd},
      {"com.microsoft.QLinearMul", RunQLinearMul},
      {"com.microsoft.QLinearSigmoid", RunQLinearSigmoid},
      {"com.microsoft.QLinearLeakyRelu", RunQLinearLeakyRelu},
      {"com.microsoft.QLinearAveragePool", RunQLinearAveragePool<false>},
      {"com.microsoft.QLinearGlobalAveragePool", RunQLinearAveragePool<true>},
      {"com.microsoft.QLinearReduceMean", RunQLinearReduceMean},
      {"com.microsoft.QLinearSoftmax", RunQLinearSoftmax},
      {"com.microsoft.QLinearConcat", RunQLinearConcat},
      {"com.microsoft.QLinearWhere", RunQLinearWhere},
      {"com.microsoft.QLinearConv", RunQLinearConvAnyLayout},
      {"com.microsoft.NhwcMaxPool", RunNhwcMaxPool},
      {"com.microsoft.MatMulIntegerToFloat", RunMatMulIntegerToFloat},
      {"com.microsoft.DynamicQuantizeMatMul", RunDynamicQuantizeMatMul},
      {"com.microsoft.QGemm", RunQGemm},
      {"com.microsoft.QAttention", RunQAttention},
      {"com.microsoft.QEmbedLayerNormalization", RunQEmbedLayerNormalization},
      {"com.microsoft.MatMulNBits", RunMatMulNBits},
  };
  return kRows;
}

}  // namespace ag::onnx_operators
