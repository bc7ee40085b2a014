// Pools over regions of images: RoiAlign and MaxRoiPool.
#include <algorithm>
#include <array>
#include <cmath>

#include "graph/onnx/operators/operator_call.h"
#include "graph/onnx/operators/wide.h"

namespace ag::onnx_operators {
namespace {

using Doubles = std::vector<double>;

// More samples of one call are refused.
constexpr double kSamplesMax = 1e10;

// The elements that bilinear interpolation of one sample takes, by offset in a plane, and their
// weights; zeros for a sample outside.
struct RegionSample {
  std::array<int64_t, 4> offsets{};
  std::array<double, 4> weights{};
};

// Returns the two elements around a place, and the weight of the second. A place up to one element
// outside counts as the border. REQUIRES: -1 <= at <= size, size > 0.
struct RegionPair {
  int64_t low = 0, high = 0;
  double weight = 0;
};
template <class F>
RegionPair PairAt(F at, int64_t size) {
  const F inside = std::max<F>(at, 0);
  const auto low = static_cast<int64_t>(inside);
  if (low >= size - 1) return {size - 1, size - 1, 0};
  return {low, low + 1, static_cast<double>(inside - static_cast<F>(low))};
}

struct RoiAlignment {
  int64_t height = 1, width = 1, sampling_ratio = 0;  // Of the result; samples along a bin, or 0.
  double scale = 1;
  bool half_pixel = true, max = false;
};

StatusOr<RoiAlignment> ReadAlignment(OperatorCall& call) {
  RoiAlignment roi{.height = call.Int("output_height", 1),
                   .width = call.Int("output_width", 1),
                   .sampling_ratio = call.Int("sampling_ratio", 0),
                   .scale = call.Float("spatial_scale", 1),
                   .half_pixel = call.opset() >= 16};
  if (call.opset() >= 16) {
    const std::string places = call.String("coordinate_transformation_mode", "half_pixel");
    roi.half_pixel = places == "half_pixel";
    if (!roi.half_pixel && places != "output_half_pixel") {
      return Err(StatusCode::kInvalidArgument, "coordinate_transformation_mode {} is not known",
                 Quoted(places));
    }
  }
  const std::string mode = call.String("mode", "avg");
  roi.max = mode == "max";
  if (!roi.max && mode != "avg") {
    return Err(StatusCode::kInvalidArgument, "mode {} is not known", Quoted(mode));
  }
  if (roi.height >= 1 && roi.width >= 1 && roi.sampling_ratio >= 0) return roi;
  return Err(StatusCode::kInvalidArgument, "bins {} x {}, sampling_ratio {}", roi.height, roi.width,
             roi.sampling_ratio);
}

// The bins of a region along one axis. Places are computed in the type of the operands as in ONNX
// Runtime: the number of samples jumps where a size is next to a whole number.
template <class F>
struct RegionBins {
  F start = 0, size = 0;  // Of a bin.
  int64_t samples = 0;    // In a bin.

  F At(int64_t bin, int64_t sample) const {
    return start + static_cast<F>(bin) * size +
           (static_cast<F>(sample) + static_cast<F>(0.5)) * size / static_cast<F>(samples);
  }
};

template <class F>
StatusOr<RegionBins<F>> BinsOf(const RoiAlignment& roi, F low, F high, int64_t count) {
  const F shift = roi.half_pixel ? static_cast<F>(0.5) : 0;
  RegionBins<F> bins{.start = low * static_cast<F>(roi.scale) - shift};
  F extent = high * static_cast<F>(roi.scale) - shift - bins.start;
  if (!roi.half_pixel) extent = std::max<F>(extent, 1);
  bins.size = extent / static_cast<F>(count);
  const double samples = roi.sampling_ratio > 0 ? static_cast<double>(roi.sampling_ratio)
                                                : std::ceil(static_cast<double>(bins.size));
  if (!(std::fabs(bins.start) <= kSamplesMax && samples <= kSamplesMax)) {
    return Err(StatusCode::kOutOfRange, "a region from {} to {}", static_cast<double>(low),
               static_cast<double>(high));
  }
  bins.samples = std::max<int64_t>(static_cast<int64_t>(std::max(samples, 0.0)), 0);
  return bins;
}

template <class F>
RegionSample SampleAt(F y, F x, int64_t height, int64_t width) {
  if (!(y >= -1 && y <= static_cast<F>(height) && x >= -1 && x <= static_cast<F>(width))) return {};
  const RegionPair v = PairAt(y, height), h = PairAt(x, width);
  return {{v.low * width + h.low, v.low * width + h.high, v.high * width + h.low,
           v.high * width + h.high},
          {(1 - v.weight) * (1 - h.weight), (1 - v.weight) * h.weight, v.weight * (1 - h.weight),
           v.weight * h.weight}};
}

// Does PoolChannels for kWide channels of `channels`.
template <size_t kWide, bool kMax>
void PoolSome(const double* pixels, size_t channels, const std::vector<RegionSample>& samples,
              double* pooled) {
  std::array<double, kWide> found;
  found.fill(kMax && !samples.empty() ? -INFINITY : 0);
  for (const RegionSample& sample : samples) {
    for (size_t i = 0; i < 4; ++i) {
      const double* const pixel = pixels + sample.offsets[i] * static_cast<int64_t>(channels);
      for (size_t c = 0; c < kWide; ++c) {
        const double product = sample.weights[i] * pixel[c];
        found[c] = kMax ? std::max(found[c], product) : found[c] + product;
      }
    }
  }
  const double by = kMax || samples.empty() ? 1 : static_cast<double>(samples.size());
  for (size_t c = 0; c < kWide; ++c) pooled[c] = found[c] / by;
}

// Sets pooled[c] to the mean of the samples of each channel c; in mode "max" to the largest product
// of an element and its weight, as ONNX's data have it. `pixels` has the channels of a pixel beside
// each other.
template <bool kMax>
void PoolChannels(const double* pixels, const std::vector<RegionSample>& samples, Doubles& pooled) {
  const size_t channels = pooled.size();
  size_t c = 0;
  for (; c + 8 <= channels; c += 8) {
    PoolSome<8, kMax>(pixels + c, channels, samples, pooled.data() + c);
  }
  for (; c < channels; ++c) {
    PoolSome<1, kMax>(pixels + c, channels, samples, pooled.data() + c);
  }
}

// Returns the elements of [N,C,H,W] as [N,H,W,C].
Doubles ChannelsLast(const Tensor& tensor) {
  const Doubles planes = tensor.ToDoubles();
  const Shape& shape = tensor.type().shape;
  const int64_t channels = shape[1], inside = shape[2] * shape[3];
  Doubles pixels(planes.size());
  for (int64_t n = 0; n < shape[0]; ++n) {
    const int64_t first = n * channels * inside;
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t i = 0; i < inside; ++i) {
        pixels[static_cast<size_t>(first + i * channels + c)] =
            planes[static_cast<size_t>(first + c * inside + i)];
      }
    }
  }
  return pixels;
}

Status CheckRegions(const OperatorCall& call, int64_t columns) {
  AG_TRY(call.CheckRank(0, 4));
  if (!IsFloat(call.TypeOf(0))) return RefuseType(call.TypeOf(0));
  AG_TRY(call.CheckType(1, call.TypeOf(0)));
  AG_TRY(call.CheckRank(1, 2));
  if (call.ShapeOf(1)[1] == columns) return OkStatus();
  return Err(StatusCode::kInvalidArgument, "input 1: expected {} columns, got {}", columns,
             call.Type(1).ToString());
}

Status CheckBatch(int64_t batch, int64_t size) {
  if (batch >= 0 && batch < size) return OkStatus();
  return Err(StatusCode::kOutOfRange, "a region is of batch item {}, the input has {}", batch,
             size);
}

// Sets `samples` to those of one bin.
template <class F>
void SamplesOf(const RegionBins<F>& rows, const RegionBins<F>& columns, int64_t row, int64_t column,
               const Shape& x, std::vector<RegionSample>& samples) {
  samples.clear();
  for (int64_t i = 0; i < rows.samples; ++i) {
    for (int64_t k = 0; k < columns.samples; ++k) {
      samples.push_back(SampleAt(rows.At(row, i), columns.At(column, k), x[2], x[3]));
    }
  }
}

Status CheckSamples(int64_t rows, int64_t columns, double* left) {
  constexpr int64_t kOfBinMax = int64_t{1} << 24;
  *left -= static_cast<double>(rows) * static_cast<double>(columns);
  if (rows <= kOfBinMax && columns <= kOfBinMax / std::max<int64_t>(rows, 1) && *left >= 0) {
    return OkStatus();
  }
  return Err(StatusCode::kResourceExhausted, "bins of {} x {} samples", rows, columns);
}

template <class F>
Status AlignRegions(OperatorCall& call, const RoiAlignment& roi, const Shape& y) {
  const Shape& x = call.ShapeOf(0);
  const int64_t inside = x[2] * x[3], bins = roi.height * roi.width;
  AG_LET(const Ints batches, call.IntsAt(2));
  const Doubles pixels = ChannelsLast(call.In(0)), regions = call.In(1).ToDoubles();
  Doubles out(static_cast<size_t>(NumElements(y))), pooled(static_cast<size_t>(x[1]));
  double left = kSamplesMax / static_cast<double>(std::max<int64_t>(bins * x[1], 1));
  std::vector<RegionSample> samples;
  for (int64_t r = 0; !out.empty() && r < y[0]; ++r) {
    const double* corner = regions.data() + r * 4;
    const auto at = [&](int64_t i) { return static_cast<F>(corner[i]); };
    AG_LET(const RegionBins<F> columns, BinsOf<F>(roi, at(0), at(2), roi.width));
    AG_LET(const RegionBins<F> rows, BinsOf<F>(roi, at(1), at(3), roi.height));
    AG_TRY(CheckSamples(rows.samples, columns.samples, &left));
    const int64_t batch = batches[static_cast<size_t>(r)];
    AG_TRY(CheckBatch(batch, x[0]));
    for (int64_t bin = 0; inside > 0 && bin < bins; ++bin) {
      SamplesOf(rows, columns, bin / roi.width, bin % roi.width, x, samples);
      const double* const image = pixels.data() + batch * x[1] * inside;
      roi.max ? PoolChannels<true>(image, samples, pooled)
              : PoolChannels<false>(image, samples, pooled);
      for (int64_t c = 0; c < x[1]; ++c) {
        out[static_cast<size_t>((r * x[1] + c) * bins + bin)] = pooled[static_cast<size_t>(c)];
      }
    }
  }
  return GiveNarrowed(call, 0, {call.TypeOf(0), y}, out);
}

// Operands: x [N,C,H,W], regions [R,4] as corners x1, y1, x2, y2, and the batch item of each.
Status RunRoiAlign(OperatorCall& call) {
  AG_TRY(call.CheckInputs(3, 3));
  AG_TRY(CheckRegions(call, 4));
  AG_LET(const RoiAlignment roi, ReadAlignment(call));
  const Shape y = {call.ShapeOf(1)[0], call.ShapeOf(0)[1], roi.height, roi.width};
  if (call.ShapeOf(2) != Shape{y[0]}) {
    return Err(StatusCode::kInvalidArgument, "input 2: expected {} batch items, got {}", y[0],
               call.Type(2).ToString());
  }
  AG_TRY(call.MakeBytes(0, {call.TypeOf(0), y}));  // Checks the size.
  return call.TypeOf(0) == DType::kFloat64 ? AlignRegions<double>(call, roi, y)
                                           : AlignRegions<float>(call, roi, y);
}

// The elements [low, high) of a bin along one axis.
struct BinRange {
  int64_t low = 0, high = 0;
};

// Returns the range of bin `bin` of a region whose first and last element are given; whole
// elements, computed in f32 as in ONNX Runtime.
BinRange RangeOf(int64_t first, int64_t last, int64_t bin, int64_t bins, int64_t size) {
  const auto extent = static_cast<float>(std::max<int64_t>(last - first + 1, 1));
  const float each = extent / static_cast<float>(bins);
  const auto low = static_cast<int64_t>(std::floor(static_cast<float>(bin) * each));
  const auto high = static_cast<int64_t>(std::ceil(static_cast<float>(bin + 1) * each));
  return {std::clamp<int64_t>(low + first, 0, size), std::clamp<int64_t>(high + first, 0, size)};
}

double LargestIn(const double* plane, int64_t width, const BinRange& rows,
                 const BinRange& columns) {
  if (rows.low >= rows.high || columns.low >= columns.high) return 0;
  double most = -INFINITY;
  for (int64_t h = rows.low; h < rows.high; ++h) {
    for (int64_t w = columns.low; w < columns.high; ++w)
      most = std::max(most, plane[h * width + w]);
  }
  return most;
}

// Operands: x [N,C,H,W] and regions [R,5] as batch item, x1, y1, x2, y2, with both corners inside.
Status RunMaxRoiPool(OperatorCall& call) {
  AG_TRY(call.CheckInputs(2, 2));
  AG_TRY(CheckRegions(call, 5));
  const Ints bins = call.IntList("pooled_shape").value_or(Ints{});
  if (bins.size() != 2 || bins[0] < 1 || bins[1] < 1) {
    return Err(StatusCode::kInvalidArgument, "pooled_shape: expected two sizes above 0");
  }
  const auto scale = static_cast<float>(call.Float("spatial_scale", 1));
  const Shape& x = call.ShapeOf(0);
  const TensorType type{call.TypeOf(0), {call.ShapeOf(1)[0], x[1], bins[0], bins[1]}};
  AG_TRY(call.MakeBytes(0, type));  // Checks the size.
  const Doubles in = call.In(0).ToDoubles(), regions = call.In(1).ToDoubles();
  Doubles out(static_cast<size_t>(type.NumElements()));
  const int64_t inside = x[2] * x[3];
  for (int64_t r = 0; !out.empty() && r < type.shape[0]; ++r) {
    std::array<int64_t, 5> at{};
    for (size_t i = 0; i < 5; ++i) {
      const double given = regions[static_cast<size_t>(r) * 5 + i];
      const float scaled = i == 0 ? static_cast<float>(given) : static_cast<float>(given) * scale;
      if (!(std::fabs(scaled) < static_cast<float>(1 << 30))) {
        return Err(StatusCode::kOutOfRange, "region {} has the value {}", r, given);
      }
      at[i] = static_cast<int64_t>(std::round(scaled));
    }
    AG_TRY(CheckBatch(at[0], x[0]));
    for (int64_t i = 0; i < x[1] * bins[0] * bins[1]; ++i) {
      const int64_t c = i / (bins[0] * bins[1]);
      const BinRange rows = RangeOf(at[2], at[4], i / bins[1] % bins[0], bins[0], x[2]);
      const BinRange columns = RangeOf(at[1], at[3], i % bins[1], bins[1], x[3]);
      out[static_cast<size_t>(r * x[1] * bins[0] * bins[1] + i)] =
          LargestIn(in.data() + (at[0] * x[1] + c) * inside, x[3], rows, columns);
    }
  }
  return GiveNarrowed(call, 0, type, out);
}

}  // namespace

std::span<const OperatorRow> RegionOperators() {
  static constexpr OperatorRow kRows[] = {
      {"RoiAlign", RunRoiAlign},
      {"MaxRoiPool", RunMaxRoiPool},
  };
  return kRows;
}

}  // namespace ag::onnx_operators
