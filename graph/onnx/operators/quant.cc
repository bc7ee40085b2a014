// Quantization, and products of integers.
#include <algorithm>
#include <cmath>

#include "graph/narrow.h"
#include "graph/onnx/operators/matrix.h"
#include "graph/onnx/operators/quantize.h"
#include "graph/onnx/operators/spatial_window.h"

namespace ag::onnx_operators {
namespace {

using Doubles = std::vector<double>;

StatusOr<DType> QuantizedType(OperatorCall& call) {
  const int64_t asked = call.Int("output_dtype", 0);
  if (call.Has(2)) return call.TypeOf(2);
  if (asked == 0) return DType::kUInt8;
  return DTypeFromOnnx(static_cast<int32_t>(asked));
}

Status RunQuantizeLinear(OperatorCall& call) {
  AG_TRY(call.CheckInputs(2, 3));
  call.Ignore("precision");
  const Shape x = call.ShapeOf(0);
  const int64_t axis = call.Int("axis", 1), block = call.Int("block_size", 0);
  const Overflow overflow =
      call.Int("saturate", 1) != 0 ? Overflow::kSaturates : Overflow::kOverflows;
  AG_LET(const DType dtype, QuantizedType(call));
  const bool to_float = IsNarrow(dtype) && dtype != DType::kInt4 && dtype != DType::kUInt4;
  QuantizedRange range;
  if (!to_float) {
    AG_LET(range, RangeOf(dtype));
  }
  AG_LET(const PerElement scale, PerElement::Of(call, 1, x, axis, block, 1));
  AG_LET(const PerElement zero, PerElement::Of(call, 2, x, axis, block, 0));
  Doubles values = call.In(0).ToDoubles();
  const bool in_float = call.TypeOf(0) == DType::kFloat32;
  for (size_t i = 0; i < values.size(); ++i) {
    // The quotient is rounded to the operand's type first, as runtimes compute it.
    const double q = values[i] / scale.at(i);
    values[i] = in_float ? static_cast<float>(q) : q;
    if (!to_float) values[i] = Quantized(values[i], zero.at(i), range);
  }
  AG_TRY(call.MakeBytes(0, {dtype, x}));
  if (to_float) {
    const auto out = call.results()[0].Mutable<uint8_t>();
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] = DoubleToNarrow(dtype, values[i] + zero.at(i), overflow);
    }
    return OkStatus();
  }
  call.Give(0, Tensor::FromDoubles({dtype, x}, values));
  return OkStatus();
}

Status RunDequantizeLinear(OperatorCall& call) {
  AG_TRY(call.CheckInputs(2, 3));
  const Shape x = call.ShapeOf(0);
  const int64_t axis = call.Int("axis", 1), block = call.Int("block_size", 0);
  DType dtype = call.TypeOf(1);
  if (const int64_t asked = call.Int("output_dtype", 0); asked != 0) {
    AG_LET(dtype, DTypeFromOnnx(static_cast<int32_t>(asked)));
  }
  if (!IsFloat(dtype)) return RefuseType(dtype);
  AG_LET(const PerElement scale, PerElement::Of(call, 1, x, axis, block, 1));
  AG_LET(const PerElement zero, PerElement::Of(call, 2, x, axis, block, 0));
  Doubles values = call.In(0).ToDoubles();
  for (size_t i = 0; i < values.size(); ++i) values[i] = (values[i] - zero.at(i)) * scale.at(i);
  AG_TRY(call.MakeBytes(0, {dtype, x}));
  call.Give(0, Tensor::FromDoubles({dtype, x}, values));
  return OkStatus();
}

// Results: u8 values, their scale, their zero point.
Status RunDynamicQuantizeLinear(OperatorCall& call) {
  AG_TRY(call.CheckInputs(1, 1));
  AG_TRY(call.CheckType(0, DType::kFloat32));
  const TensorType type{DType::kUInt8, call.ShapeOf(0)};
  Doubles values = call.In(0).ToDoubles();
  const DynamicScale to = DynamicScaleOf(values);
  for (double& v : values) v = to.Quantize(v);
  AG_TRY(call.MakeBytes(0, type));
  call.Give(0, Tensor::FromDoubles(type, values));
  const double zeros[] = {to.zero};
  call.Give(1, Tensor::FromFloats({}, {&to.scale, 1}));
  call.Give(2, Tensor::FromDoubles({DType::kUInt8, {}}, zeros));
  return OkStatus();
}

Status RunMatMulInteger(OperatorCall& call) {
  AG_TRY(call.CheckInputs(2, 4));
  AG_LET(const Doubles a, WithoutZero(call, 0, 2, RowsAxis(call, 0)));
  AG_LET(const Doubles b, WithoutZero(call, 1, 3, -1));
  AG_LET(const Matrix product,
         MultiplyMatrices(call, DType::kInt32, {call.ShapeOf(0), a}, {call.ShapeOf(1), b}));
  call.Give(0, Tensor::FromDoubles({DType::kInt32, product.shape}, product.values));
  return OkStatus();
}

// Scales sums of products and quantizes them with the result's scale and zero point. The scale of
// the weights goes with `axis` of the result.
Status GiveRequantized(OperatorCall& call, const Shape& shape, const Doubles& sums, size_t a_scale,
                       size_t b_scale, size_t y_scale, size_t y_zero, int64_t axis) {
  const DType dtype = call.TypeOf(y_zero);
  AG_LET(const QuantizedRange range, RangeOf(dtype));
  AG_LET(const PerElement by_a, PerElement::Of(call, a_scale, shape, -2, 0, 1));
  AG_LET(const PerElement by_b, PerElement::Of(call, b_scale, shape, axis, 0, 1));
  AG_LET(const PerElement to, PerElement::Of(call, y_scale, shape, -2, 0, 1));
  AG_LET(const PerElement zero, PerElement::Of(call, y_zero, shape, -2, 0, 0));
  Doubles values(sums.size());
  for (size_t i = 0; i < sums.size(); ++i) {
    const auto factor = static_cast<float>(by_a.at(i) * by_b.at(i) / to.at(i));
    values[i] = Quantized(static_cast<float>(sums[i] * factor), zero.at(i), range);
  }
  AG_TRY(call.MakeBytes(0, {dtype, shape}));
  call.Give(0, Tensor::FromDoubles({dtype, shape}, values));
  return OkStatus();
}

// Operands: a, its scale and zero point, b, its scale and zero point, the result's.
Status RunQLinearMatMul(OperatorCall& call) {
  AG_TRY(call.CheckInputs(8, 8));
  AG_LET(const Doubles a, WithoutZero(call, 0, 2, RowsAxis(call, 0)));
  AG_LET(const Doubles b, WithoutZero(call, 3, 5, -1));
  AG_LET(const Matrix product,
         MultiplyMatrices(call, call.TypeOf(7), {call.ShapeOf(0), a}, {call.ShapeOf(3), b}));
  return GiveRequantized(call, product.shape, product.values, 1, 4, 6, 7, -1);
}

Status RunConvInteger(OperatorCall& call) {
  AG_TRY(call.CheckInputs(2, 4));
  AG_LET(const Doubles x, WithoutZero(call, 0, 2, 0));
  AG_LET(const Doubles w, WithoutZero(call, 1, 3, 0));
  AG_LET(Convolved out, Convolve(call, {x, call.ShapeOf(0)}, {w, call.ShapeOf(1)}, {}));
  AG_TRY(call.MakeBytes(0, {DType::kInt32, out.shape}));
  call.Give(0, Tensor::FromDoubles({DType::kInt32, out.shape}, out.values));
  return OkStatus();
}

// Operands: x, its scale and zero point, w, its scales and zero points, the result's, a bias.
Status RunQLinearConv(OperatorCall& call) {
  AG_TRY(call.CheckInputs(8, 9));
  AG_LET(const Doubles x, WithoutZero(call, 0, 2, 0));
  AG_LET(const Doubles w, WithoutZero(call, 3, 5, 0));
  Doubles bias;
  if (call.Has(8)) bias = call.In(8).ToDoubles();
  AG_LET(Convolved out, Convolve(call, {x, call.ShapeOf(0)}, {w, call.ShapeOf(3)}, bias));
  return GiveRequantized(call, out.shape, out.values, 1, 4, 6, 7, 1);
}

}  // namespace

StatusOr<PerElement> PerElement::Of(const OperatorCall& call, size_t operand, const Shape& shape,
                                    int64_t axis, int64_t block, double otherwise) {
  PerElement per;
  per.values_ = {otherwise};
  if (!call.Has(operand)) return per;
  per.values_ = call.In(operand).ToDoubles();
  if (per.values_.size() == 1) return per;
  const Shape& own = call.ShapeOf(operand);
  const auto rank = static_cast<int64_t>(shape.size());
  AG_LET(const int64_t at, ResolveAxis(axis, rank));
  const auto i = static_cast<size_t>(at);
  per.inner_ = NumElements(std::span(shape).subspan(i + 1));
  per.size_ = shape[i];
  if (block <= 0) {
    if (own == Shape{shape[i]}) return per;
  } else {
    Shape expected = shape;
    expected[i] = shape[i] / block + (shape[i] % block == 0 ? 0 : 1);
    per.block_ = block;
    per.blocks_ = expected[i];
    if (own == expected) return per;
  }
  return Err(StatusCode::kInvalidArgument, "input {}: {} does not fit axis {} of {}", operand,
             call.Type(operand).ToString(), at, ShapeToString(shape));
}

double PerElement::at(size_t element) const {
  if (values_.size() == 1) return values_[0];
  const auto e = static_cast<int64_t>(element);
  const int64_t place = e / inner_ % size_;
  if (block_ == 0) return values_[static_cast<size_t>(place)];
  const int64_t outer = e / (inner_ * size_);
  return values_[static_cast<size_t>((outer * blocks_ + place / block_) * inner_ + e % inner_)];
}

StatusOr<QuantizedRange> RangeOf(DType dtype) {
  switch (dtype) {
    case DType::kUInt4:
      return QuantizedRange{0, 15};
    case DType::kInt4:
      return QuantizedRange{-8, 7};
    case DType::kUInt8:
      return QuantizedRange{0, 255};
    case DType::kInt8:
      return QuantizedRange{-128, 127};
    case DType::kUInt16:
      return QuantizedRange{0, 65535};
    case DType::kInt16:
      return QuantizedRange{-32768, 32767};
    case DType::kInt32:
      return QuantizedRange{-2147483648.0, 2147483647.0};
    default:
      return RefuseType(dtype);
  }
}

double Quantized(double value, double zero, const QuantizedRange& range) {
  return std::clamp(std::nearbyint(value) + zero, range.low, range.high);
}

float DynamicScale::Quantize(double value) const {
  return std::clamp(std::nearbyint(static_cast<float>(value) / scale) + zero, 0.0F, 255.0F);
}

DynamicScale DynamicScaleOf(std::span<const double> values) {
  double low = 0, high = 0;
  for (const double v : values) {
    low = std::min(low, v);
    high = std::max(high, v);
  }
  const auto least = static_cast<float>(low), most = static_cast<float>(high);
  DynamicScale to;
  if (most != least) to.scale = (most - least) / 255.0F;
  to.zero = std::nearbyint(std::clamp(-least / to.scale, 0.0F, 255.0F));
  return to;
}

StatusOr<Doubles> WithoutZero(const OperatorCall& call, size_t i, size_t zero_operand,
                              int64_t axis) {
  const Shape& shape = call.ShapeOf(i);
  Doubles values = call.In(i).ToDoubles();
  AG_LET(const PerElement zero, PerElement::Of(call, zero_operand, shape, axis, 0, 0));
  for (size_t e = 0; e < values.size(); ++e) values[e] -= zero.at(e);
  return values;
}

int64_t RowsAxis(const OperatorCall& call, size_t i) { return call.Rank(i) > 1 ? -2 : -1; }

std::span<const OperatorRow> QuantOperators() {
  static constexpr OperatorRow kRows[] = {
      {"QuantizeLinear", RunQuantizeLinear},
      {"DequantizeLinear", RunDequantizeLinear},
      {"DynamicQuantizeLinear", RunDynamicQuantizeLinear},
      {"MatMulInteger", RunMatMulInteger},
      {"QLinearMatMul", RunQLinearMatMul},
      {"ConvInteger", RunConvInteger},
      {"QLinearConv", RunQLinearConv},
  };
  return kRows;
}

}  // namespace ag::onnx_operators
