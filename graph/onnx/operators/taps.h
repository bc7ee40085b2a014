// Values between the elements of a grid: the elements around a place with their weights, along each
// axis and over all axes. Pure functions.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "graph/onnx/operators/operator_call.h"

namespace ag::onnx_operators {

// The elements along one axis, at most four, and their weights. Element kOutside counts as zero.
struct AxisTaps {
  static constexpr int64_t kOutside = -1;
  int64_t count = 0;
  std::array<int64_t, 4> elements{};
  std::array<double, 4> weights{};

  void Add(int64_t element, double weight) {
    elements[static_cast<size_t>(count)] = element;
    weights[static_cast<size_t>(count++)] = weight;
  }
};

// Returns a place that floor() turns into an index without overflow; NaN is far below all elements.
double BoundedPlace(double place);

// One element of a plane, by its offset, and its weight.
struct Tap {
  int64_t offset = 0;
  double weight = 0;
};

// More taps of one value are refused.
inline constexpr int64_t kTapsMax = int64_t{1} << 16;

// Sets `taps` to the products of the axes' taps that are inside. `sizes` are those of the plane.
// REQUIRES: the numbers of taps multiply to at most kTapsMax.
void CombineTaps(std::span<const AxisTaps> axes, std::span<const int64_t> sizes,
                 std::vector<Tap>& taps);

// kUnimplemented: `count` taps along each of `axes` axes are more than kTapsMax.
Status CheckTaps(int64_t count, size_t axes);

}  // namespace ag::onnx_operators
