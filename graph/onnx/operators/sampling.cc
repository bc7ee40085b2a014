#include "graph/onnx/operators/sampling.h"

#include <algorithm>
#include <cmath>

#include "graph/resize.h"

namespace ag::onnx_operators {
namespace {

// Returns the element that stands for the one at `i`. Reflection repeats the element at the border,
// except with align_corners.
int64_t ElementFor(const Sampling& sampling, int64_t i, int64_t size) {
  if (i >= 0 && i < size) return i;
  if (size == 0 || sampling.outside == Outside::kZeros) return AxisTaps::kOutside;
  if (sampling.outside == Outside::kBorder) return std::clamp<int64_t>(i, 0, size - 1);
  const int64_t period = sampling.align_corners ? std::max<int64_t>(2 * (size - 1), 1) : 2 * size;
  const int64_t at = (i % period + period) % period;
  return at < size ? at : sampling.align_corners ? period - at : period - 1 - at;
}

}  // namespace

// Modes had other names before opset 20.
StatusOr<Sampling> ReadSampling(NodeAttributes& attributes) {
  Sampling sampling{.align_corners = attributes.Int("align_corners", 0) != 0};
  const std::string mode = attributes.String("mode", "linear");
  const std::string padding = attributes.String("padding_mode", "zeros");
  if (mode == "nearest") {
    sampling.taps = 1;
  } else if (mode == "cubic" || mode == "bicubic") {
    sampling.taps = 4;
  } else if (mode != "linear" && mode != "bilinear") {
    return Err(StatusCode::kInvalidArgument, "mode {} is not known", Quoted(mode));
  }
  if (padding == "border") {
    sampling.outside = Outside::kBorder;
  } else if (padding == "reflection") {
    sampling.outside = Outside::kReflection;
  } else if (padding != "zeros") {
    return Err(StatusCode::kInvalidArgument, "padding_mode {} is not known", Quoted(padding));
  }
  return sampling;
}

AxisTaps TapsAt(const Sampling& sampling, double place, int64_t size) {
  AxisTaps taps;
  place = BoundedPlace(place);
  if (sampling.taps == 1) {  // A tie goes to the even one.
    taps.Add(ElementFor(sampling, static_cast<int64_t>(std::nearbyint(place)), size), 1);
    return taps;
  }
  const double below = std::floor(place), past = place - below;
  const auto first = static_cast<int64_t>(below);
  if (sampling.taps == 2) {
    taps.Add(ElementFor(sampling, first, size), 1 - past);
    taps.Add(ElementFor(sampling, first + 1, size), past);
    return taps;
  }
  const std::array<double, 4> weights = CubicWeights(-0.75, past);
  for (int64_t t = 0; t < 4; ++t) {
    taps.Add(ElementFor(sampling, first - 1 + t, size), weights[static_cast<size_t>(t)]);
  }
  return taps;
}

}  // namespace ag::onnx_operators
