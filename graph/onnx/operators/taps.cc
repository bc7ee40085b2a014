#include "graph/onnx/operators/taps.h"

#include <algorithm>
#include <cmath>

namespace ag::onnx_operators {

double BoundedPlace(double place) {
  constexpr auto kFar = static_cast<double>(int64_t{1} << 60);
  return std::isnan(place) ? -kFar : std::clamp(place, -kFar, kFar);
}

void CombineTaps(std::span<const AxisTaps> axes, std::span<const int64_t> sizes,
                 std::vector<Tap>& taps) {
  taps.assign(1, {0, 1});
  std::vector<Tap> next;
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    next.clear();
    for (const Tap& tap : taps) {
      for (size_t i = 0; i < static_cast<size_t>(axes[axis].count); ++i) {
        const int64_t element = axes[axis].elements[i];
        if (element == AxisTaps::kOutside) continue;
        next.push_back({tap.offset * sizes[axis] + element, tap.weight * axes[axis].weights[i]});
      }
    }
    taps.swap(next);
  }
}

Status CheckTaps(int64_t count, size_t axes) {
  int64_t all = 1;
  for (size_t i = 0; i < axes && all <= kTapsMax; ++i) all *= count;
  if (all <= kTapsMax) return OkStatus();
  return Err(StatusCode::kUnimplemented, "{} axes are not supported", axes);
}

}  // namespace ag::onnx_operators
