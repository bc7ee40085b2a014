// Shape rules of contractions and pooling.
#include "graph/shapes.h"

namespace ag {
namespace {

// The greatest value allowed in window attributes; the product of two such values fits into 64
// bits.
constexpr int64_t kWindowValueMax = int64_t{1} << 30;

Status CheckInts(std::string_view name, const Ints& values, size_t count, int64_t low) {
  if (values.size() != count) {
    return Err(StatusCode::kInvalidArgument, "{}: expected {} values, got {}", name, count,
               values.size());
  }
  for (const int64_t value : values) {
    if (value >= low && value <= kWindowValueMax) continue;
    return Err(StatusCode::kInvalidArgument, "{}: {} is outside [{}, 2^30]", name, value, low);
  }
  return OkStatus();
}

Status CheckWindowAttributes(const Attributes& attributes, size_t axes) {
  AG_TRY(CheckInts("strides", attributes.IntList("strides"), axes, 1));
  AG_TRY(CheckInts("pads", attributes.IntList("pads"), 2 * axes, 0));
  return CheckInts("dilations", attributes.IntList("dilations"), axes, 1);
}

Window WindowOf(const Attributes& attributes, size_t axis, int64_t in, int64_t kernel) {
  const Ints& pads = attributes.IntList("pads");
  return {.in = in,
          .kernel = kernel,
          .stride = attributes.IntList("strides")[axis],
          .dilation = attributes.IntList("dilations")[axis],
          .pad_begin = pads[axis],
          .pad_end = pads[pads.size() / 2 + axis]};
}

Status CheckConvTypes(const ShapeCall& call) {
  const TensorType& x = call.inputs[0];
  const TensorType& w = call.inputs[1];
  const TensorType& bias = call.inputs[2];
  if (!IsFloat(x.dtype) || w.dtype != x.dtype || bias.dtype != x.dtype) {
    return Err(StatusCode::kInvalidArgument, "expected one floating point type, got {}, {}, {}",
               DTypeName(x.dtype), DTypeName(w.dtype), DTypeName(bias.dtype));
  }
  if (x.shape.size() < 3 || w.shape.size() != x.shape.size()) {
    return Err(StatusCode::kInvalidArgument,
               "expected x and w of one rank of 3 or more, got {} and {}", ShapeToString(x.shape),
               ShapeToString(w.shape));
  }
  const int64_t group = call.attributes.Int("group");
  if (group < 1 || group > w.shape[0] || w.shape[0] % group != 0) {
    return Err(StatusCode::kInvalidArgument, "group {} does not divide {} output channels", group,
               w.shape[0]);
  }
  if (w.shape[1] * group != x.shape[1]) {
    return Err(StatusCode::kInvalidArgument, "expected {} input channels, got {}",
               w.shape[1] * group, x.shape[1]);
  }
  const TensorType bias_expected{x.dtype, {w.shape[0]}};
  if (bias != bias_expected) {
    return Err(StatusCode::kInvalidArgument, "bias: expected {}, got {}", bias_expected.ToString(),
               bias.ToString());
  }
  return OkStatus();
}

Status CheckMatMulTypes(const TensorType& a, const TensorType& b) {
  if (a.dtype != b.dtype || a.dtype == DType::kBool) {
    return Err(StatusCode::kInvalidArgument, "expected one numeric type, got {} and {}",
               DTypeName(a.dtype), DTypeName(b.dtype));
  }
  if (a.shape.size() < 2 || b.shape.size() < 2) {
    return Err(StatusCode::kInvalidArgument, "operands need rank 2 or more, got {} and {}",
               a.ToString(), b.ToString());
  }
  const int64_t inner_a = a.shape.back();
  const int64_t inner_b = b.shape[b.shape.size() - 2];
  if (inner_a != inner_b) {
    return Err(StatusCode::kInvalidArgument, "inner dims differ: {} vs {}", inner_a, inner_b);
  }
  return OkStatus();
}

}  // namespace

StatusOr<int64_t> WindowOutput(const Window& window) {
  if (window.kernel < 1 || window.kernel > kWindowValueMax) {
    return Err(StatusCode::kInvalidArgument, "kernel size {} is outside [1, 2^30]", window.kernel);
  }
  const int64_t extent = window.dilation * (window.kernel - 1) + 1;
  const int64_t padded = window.in + window.pad_begin + window.pad_end;
  if (extent > padded) {
    return Err(StatusCode::kInvalidArgument, "kernel spans {}, padded input has {}", extent,
               padded);
  }
  const int64_t room = padded - extent;
  if (!window.ceil_mode) return room / window.stride + 1;
  int64_t count = (room + window.stride - 1) / window.stride + 1;
  if ((count - 1) * window.stride >= window.in + window.pad_begin) --count;
  return count;
}

namespace internal {

StatusOr<TensorTypes> ConvShape(const ShapeCall& call) {
  AG_TRY(CheckConvTypes(call));
  const TensorType& x = call.inputs[0];
  const TensorType& w = call.inputs[1];
  const size_t axes = x.shape.size() - 2;
  AG_TRY(CheckWindowAttributes(call.attributes, axes));
  TensorType result{x.dtype, {x.shape[0], w.shape[0]}};
  for (size_t i = 0; i < axes; ++i) {
    AG_LET(const int64_t size,
           WindowOutput(WindowOf(call.attributes, i, x.shape[i + 2], w.shape[i + 2])));
    result.shape.push_back(size);
  }
  return TensorTypes{std::move(result)};
}

StatusOr<TensorTypes> MatMulShape(const ShapeCall& call) {
  const TensorType& a = call.inputs[0];
  const TensorType& b = call.inputs[1];
  AG_TRY(CheckMatMulTypes(a, b));
  const std::span<const int64_t> batch_a(a.shape.data(), a.shape.size() - 2);
  const std::span<const int64_t> batch_b(b.shape.data(), b.shape.size() - 2);
  AG_LET(Shape shape, BroadcastShapes(batch_a, batch_b));
  shape.push_back(a.shape[a.shape.size() - 2]);
  shape.push_back(b.shape.back());
  return TensorTypes{TensorType{a.dtype, std::move(shape)}};
}

StatusOr<TensorTypes> PoolShape(const ShapeCall& call) {
  const TensorType& x = call.inputs[0];
  const Ints& kernel = call.attributes.IntList("kernel_shape");
  if (x.dtype == DType::kBool || (call.op == OpKind::kAveragePool && !IsFloat(x.dtype))) {
    return Err(StatusCode::kInvalidArgument, "cannot pool {}", x.ToString());
  }
  if (x.shape.size() < 3) {
    return Err(StatusCode::kInvalidArgument, "expected rank 3 or more, got {}", x.ToString());
  }
  const size_t axes = x.shape.size() - 2;
  AG_TRY(CheckInts("kernel_shape", kernel, axes, 1));
  AG_TRY(CheckWindowAttributes(call.attributes, axes));
  TensorType result{x.dtype, {x.shape[0], x.shape[1]}};
  for (size_t i = 0; i < axes; ++i) {
    Window window = WindowOf(call.attributes, i, x.shape[i + 2], kernel[i]);
    window.ceil_mode = call.attributes.Int("ceil_mode") != 0;
    const int64_t extent = window.dilation * (window.kernel - 1) + 1;
    if (window.pad_begin >= extent || window.pad_end >= extent) {
      return Err(StatusCode::kInvalidArgument, "pads {} and {} reach the kernel's extent {}",
                 window.pad_begin, window.pad_end, extent);
    }
    AG_LET(const int64_t size, WindowOutput(window));
    result.shape.push_back(size);
  }
  return TensorTypes{std::move(result)};
}

}  // namespace internal
}  // namespace ag
