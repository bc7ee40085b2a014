// Fourier transforms, windows of signals, and weights of mel filters.
#include <cmath>
#include <complex>
#include <numbers>

#include "graph/onnx/operators/layout.h"
#include "graph/onnx/operators/wide.h"

namespace ag::onnx_operators {
namespace {

using Complex = std::complex<double>;
using Doubles = std::vector<double>;

constexpr int64_t kTransformMax = int64_t{1} << 26;  // Elements of one transform.
constexpr double kTransformTermsMax = 1e11;          // Products of all transforms of a call.

int64_t SmallestFactor(int64_t n) {
  for (int64_t p = 2; p * p <= n; ++p) {
    if (n % p == 0) return p;
  }
  return n;
}

// Discrete Fourier transforms of one length, by its prime factors.
class Transform {
 public:
  // kResourceExhausted: the length, or the work for `lines` of them, passes the limit.
  static StatusOr<Transform> Of(int64_t length, bool inverse, int64_t lines) {
    if (length < 1 || length > kTransformMax) {
      return Err(length < 1 ? StatusCode::kInvalidArgument : StatusCode::kResourceExhausted,
                 "a transform of {} elements is not in [1, {}]", length, kTransformMax);
    }
    double terms = 0;
    for (int64_t rest = length; rest > 1;) {
      const int64_t p = SmallestFactor(rest);
      terms += static_cast<double>(p);
      rest /= p;
    }
    terms *= static_cast<double>(length) * static_cast<double>(lines);
    if (terms > kTransformTermsMax) {
      return Err(StatusCode::kResourceExhausted, "{} products are more than {}", terms,
                 kTransformTermsMax);
    }
    Transform transform;
    const double sign = inverse ? 1 : -1;
    const double turn = sign * 2 * std::numbers::pi / static_cast<double>(length);
    const Complex quarters[] = {{1, 0}, {0, sign}, {-1, 0}, {0, -sign}};  // Exact.
    for (int64_t i = 0; i < length; ++i) {
      const bool is_quarter = 4 * i % length == 0;
      transform.roots_.push_back(is_quarter ? quarters[4 * i / length]
                                            : std::polar(1.0, turn * static_cast<double>(i)));
    }
    return transform;
  }

  int64_t length() const { return static_cast<int64_t>(roots_.size()); }
  // Sets out[k] to the sum of in[j] * root ^ (j * k). REQUIRES: both have length() elements.
  void Run(const Complex* in, Complex* out) const { Run(in, length(), 1, out); }

 private:
  // Transforms the elements in[0], in[stride], ...: n of them.
  void Run(const Complex* in, int64_t n, int64_t stride, Complex* out) const {
    if (n == 1) {
      out[0] = in[0];
      return;
    }
    const int64_t p = SmallestFactor(n), m = n / p;
    for (int64_t r = 0; r < p; ++r) Run(in + r * stride, m, stride * p, out + r * m);
    std::vector<Complex> parts(static_cast<size_t>(p));
    for (int64_t k = 0; k < m; ++k) {
      for (int64_t r = 0; r < p; ++r) parts[static_cast<size_t>(r)] = out[r * m + k];
      for (int64_t q = 0; q < p; ++q) {
        Complex sum = 0;
        for (int64_t r = 0; r < p; ++r) {
          const int64_t power = r * (k + q * m) % n * stride;
          sum += parts[static_cast<size_t>(r)] * roots_[static_cast<size_t>(power)];
        }
        out[q * m + k] = sum;
      }
    }
  }

  std::vector<Complex> roots_;
};

// Numbers of a tensor whose last axis holds one part (real) or two (real and imaginary).
struct Signal {
  Doubles values;
  int64_t parts = 1;

  Complex At(int64_t i) const {
    const double* v = values.data() + i * parts;
    return {v[0], parts == 2 ? v[1] : 0};
  }
};

Status CheckSignal(const OperatorCall& call, size_t rank_min) {
  if (!IsFloat(call.TypeOf(0))) return RefuseType(call.TypeOf(0));
  const Shape& x = call.ShapeOf(0);
  if (x.size() >= rank_min && (x.size() < 3 || x.back() == 1 || x.back() == 2)) return OkStatus();
  return Err(StatusCode::kInvalidArgument, "input 0: expected a last axis of 1 or 2, got {}",
             call.Type(0).ToString());
}

// Sets the elements that the other half mirrors.
void MirrorHalf(std::vector<Complex>& line) {
  const size_t n = line.size();
  line[0] = line[0].real();
  if (n % 2 == 0) line[n / 2] = line[n / 2].real();
  for (size_t k = 1; k < n - k; ++k) line[n - k] = std::conj(line[k]);
}

// Since opset 20 the axis is an operand. A one-sided inverse reads one half of the spectrum of a
// real signal and gives that signal.
Status RunDft(OperatorCall& call) {
  const bool axis_is_operand = call.opset() >= 20;
  AG_TRY(call.CheckInputs(1, axis_is_operand ? 3 : 2));
  AG_TRY(CheckSignal(call, 2));
  const bool inverse = call.Int("inverse", 0) != 0, onesided = call.Int("onesided", 0) != 0;
  Shape lines = call.ShapeOf(0);
  Signal x{call.In(0).ToDoubles(), lines.back()};
  lines.pop_back();
  int64_t axis = axis_is_operand ? -2 : call.Int("axis", 1);
  if (axis_is_operand && call.Has(2)) {
    AG_LET(axis, call.IntAt(2));
  }
  AG_LET(axis, ResolveAxis(axis, call.Rank(0)));
  if (axis + 1 == call.Rank(0) || x.parts < 1 || x.parts > 2) {
    return Err(StatusCode::kInvalidArgument, "axis {} of {}", axis, call.Type(0).ToString());
  }
  const AxisView in = ViewAlong(lines, axis);
  const bool mirrors = inverse && onesided;
  int64_t length = mirrors ? 2 * (in.size - 1) : in.size;
  if (call.Has(1)) {
    AG_LET(length, call.IntAt(1));
  }
  AG_LET(const Transform transform, Transform::Of(length, inverse, in.outer * in.inner));
  AxisView out = in;
  out.size = onesided && !inverse ? length / 2 + 1 : length;
  lines[static_cast<size_t>(axis)] = out.size;
  lines.push_back(mirrors ? 1 : 2);
  AG_TRY(call.MakeBytes(0, {call.TypeOf(0), lines}));  // Checks the size.
  Doubles result(static_cast<size_t>(NumElements(lines)));
  std::vector<Complex> line(static_cast<size_t>(length)), spectrum(line.size());
  const double by = inverse ? 1 / static_cast<double>(length) : 1;
  const int64_t read = std::min(in.size, mirrors ? length / 2 + 1 : length);
  for (int64_t row = 0; row < in.outer * in.inner; ++row) {
    const int64_t o = row / in.inner, n = row % in.inner;
    std::ranges::fill(line, 0);
    for (int64_t i = 0; i < read; ++i) line[static_cast<size_t>(i)] = x.At(in.At(o, i, n));
    if (mirrors) MirrorHalf(line);
    transform.Run(line.data(), spectrum.data());
    for (int64_t k = 0; k < out.size; ++k) {
      const Complex value = spectrum[static_cast<size_t>(k)] * by;
      double* to = result.data() + out.At(o, k, n) * lines.back();
      to[0] = value.real();
      if (!mirrors) to[1] = value.imag();
    }
  }
  return GiveNarrowed(call, 0, {call.TypeOf(0), lines}, result);
}

// Operands: the signal [batch, length, 1 or 2] (a real one may lack the last axis), the step from
// frame to frame, a window, and the length of a frame.
Status RunStft(OperatorCall& call) {
  AG_TRY(call.CheckInputs(2, 4));
  AG_TRY(CheckSignal(call, 2));
  const Shape& in = call.ShapeOf(0);
  if (in.size() > 3) {
    return Err(StatusCode::kInvalidArgument, "input 0: expected rank 3, got {}",
               call.Type(0).ToString());
  }
  const Signal x{call.In(0).ToDoubles(), in.size() == 3 ? in[2] : 1};
  AG_LET(const int64_t step, call.IntAt(1));
  int64_t length = in[1];
  if (call.Has(2)) length = call.Type(2).NumElements();
  if (call.Has(3)) {
    AG_LET(length, call.IntAt(3));
  }
  if (step < 1 || length < 1 || length > in[1]) {
    return Err(StatusCode::kInvalidArgument, "frames of {}, a step of {}, a signal of {}", length,
               step, in[1]);
  }
  Doubles window(static_cast<size_t>(length), 1);
  if (call.Has(2)) window = call.In(2).ToDoubles();
  if (call.Has(2) && call.ShapeOf(2) != Shape{length}) {
    return Err(StatusCode::kInvalidArgument, "input 2: expected {} values, got {}", length,
               call.Type(2).ToString());
  }
  const int64_t frames = (in[1] - length) / step + 1;
  const int64_t bins = call.Int("onesided", 1) != 0 ? length / 2 + 1 : length;
  AG_LET(const Transform transform, Transform::Of(length, false, in[0] * frames));
  const TensorType type{call.TypeOf(0), {in[0], frames, bins, 2}};
  AG_TRY(call.MakeBytes(0, type));  // Checks the size.
  Doubles result;
  std::vector<Complex> line(static_cast<size_t>(length)), spectrum(line.size());
  for (int64_t row = 0; row < in[0] * frames; ++row) {
    const int64_t first = row / frames * in[1] + row % frames * step;
    for (int64_t i = 0; i < length; ++i) {
      const auto at = static_cast<size_t>(i);
      line[at] = x.At(first + i) * window[at];
    }
    transform.Run(line.data(), spectrum.data());
    for (int64_t k = 0; k < bins; ++k) {
      const Complex value = spectrum[static_cast<size_t>(k)];
      result.insert(result.end(), {value.real(), value.imag()});
    }
  }
  return GiveNarrowed(call, 0, type, result);
}

// Returns the element type that attribute output_datatype names.
StatusOr<DType> AskedType(OperatorCall& call) {
  AG_LET(const DType dtype, DTypeFromOnnx(static_cast<int32_t>(
                                call.Int("output_datatype", DTypeToOnnx(DType::kFloat32)))));
  if (!IsFloat(dtype) && !IsInteger(dtype)) return RefuseType(dtype);
  return dtype;
}

// a - b * cos(turn) + c * cos(2 * turn) over one turn.
struct Cosines {
  double a, b, c;
};
constexpr Cosines kHann = {0.5, 0.5, 0}, kHamming = {25.0 / 46, 21.0 / 46, 0},
                  kBlackman = {0.42, 0.5, 0.08};

template <const Cosines& cosines>
Status RunCosineWindow(OperatorCall& call) {
  AG_TRY(call.CheckInputs(1, 1));
  AG_LET(const int64_t size, call.IntAt(0));
  AG_LET(const DType dtype, AskedType(call));
  const int64_t period = call.Int("periodic", 1) != 0 ? size : size - 1;
  if (size < 0) return Err(StatusCode::kInvalidArgument, "a window of {} elements", size);
  AG_TRY(call.MakeBytes(0, {dtype, {size}}));  // Checks the size.
  Doubles values;
  for (int64_t i = 0; i < size; ++i) {
    const double turn = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(period);
    const double value = cosines.a - cosines.b * std::cos(turn) + cosines.c * std::cos(2 * turn);
    values.push_back(size == 1 && period == 0 ? 1 : value);
  }
  return GiveNarrowed(call, 0, {dtype, {size}}, values);
}

double ToMel(double hertz) { return 2595 * std::log10(1 + hertz / 700); }
double FromMel(double mel) { return 700 * (std::pow(10, mel / 2595) - 1); }

// Operands: the number of filters, the length of the transform, the sample rate, and the lowest and
// the highest frequency. Each filter is a triangle over the bins of the transform.
Status RunMelWeightMatrix(OperatorCall& call) {
  AG_TRY(call.CheckInputs(5, 5));
  AG_LET(const int64_t filters, call.IntAt(0));
  AG_LET(const int64_t length, call.IntAt(1));
  AG_LET(const int64_t rate, call.IntAt(2));
  AG_LET(const DType dtype, AskedType(call));
  for (const size_t i : {3, 4}) {
    if (call.Type(i).NumElements() == 1 && IsFloat(call.TypeOf(i))) continue;
    return Err(StatusCode::kInvalidArgument, "input {}: expected one number, got {}", i,
               call.Type(i).ToString());
  }
  const double low = call.NumberAt(3), high = call.NumberAt(4);
  if (filters < 0 || length < 0 || rate < 1 || !(low >= 0) || !(high >= low)) {
    return Err(StatusCode::kInvalidArgument, "{} filters from {} to {} of {} bins at {} Hz",
               filters, low, high, length, rate);
  }
  const int64_t bins = length / 2 + 1;
  const TensorType type{dtype, {bins, filters}};
  AG_TRY(call.MakeBytes(0, type));  // Checks the size.
  Doubles weights(static_cast<size_t>(type.NumElements()));
  const double step = (ToMel(high) - ToMel(low)) / static_cast<double>(filters + 2);
  const auto bin = [&](int64_t i) {
    const double hertz = FromMel(ToMel(low) + static_cast<double>(i) * step);
    return std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate));
  };
  if (filters > 0 && bin(filters + 1) > static_cast<double>(bins)) {
    return Err(StatusCode::kOutOfRange, "{} Hz is above half of the sample rate {}", high, rate);
  }
  for (int64_t i = 0; i < filters; ++i) {
    const auto left = static_cast<int64_t>(bin(i)), middle = static_cast<int64_t>(bin(i + 1)),
               right = static_cast<int64_t>(bin(i + 2));
    const auto set = [&](int64_t at, int64_t rise, int64_t over) {
      if (at >= bins) return;
      weights[static_cast<size_t>(at * filters + i)] =
          static_cast<double>(rise) / static_cast<double>(over);
    };
    if (left == middle) set(middle, 1, 1);
    for (int64_t at = left; left < middle && at <= middle; ++at) set(at, at - left, middle - left);
    for (int64_t at = middle; at < right; ++at) set(at, right - at, right - middle);
  }
  return GiveNarrowed(call, 0, type, weights);
}

}  // namespace

std::span<const OperatorRow> SignalOperators() {
  static constexpr OperatorRow kRows[] = {
      {"DFT", RunDft, FromOperands({1, 2})},
      {"STFT", RunStft, FromOperands({1, 3})},
      {"HannWindow", RunCosineWindow<kHann>, FromOperands({0})},
      {"HammingWindow", RunCosineWindow<kHamming>, FromOperands({0})},
      {"BlackmanWindow", RunCosineWindow<kBlackman>, FromOperands({0})},
      {"MelWeightMatrix", RunMelWeightMatrix, FromOperands({0, 1})},
  };
  return kRows;
}

}  // namespace ag::onnx_operators
