// How GridSample reads a tensor at a place between its elements, along one axis. Pure functions.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "graph/onnx/node_attributes.h"
#include "graph/onnx/operators/taps.h"

namespace ag::onnx_operators {

enum class Outside : uint8_t { kZeros, kBorder, kReflection };

struct Sampling {
  int64_t taps = 2;  // Along each axis: 1 (nearest), 2 (linear) or 4 (cubic).
  Outside outside = Outside::kZeros;
  bool align_corners = false;
};

// Reads the attributes of a GridSample. kInvalidArgument: a word that it does not know.
StatusOr<Sampling> ReadSampling(NodeAttributes& attributes);

// Returns the elements around `place` on an axis of `size`; a place on the axis of the elements is
// from 0 to size - 1.
AxisTaps TapsAt(const Sampling& sampling, double place, int64_t size);

// Returns the place of a coordinate in [-1, 1] on an axis. It is computed in the type F of the
// grid, as in ONNX Runtime: next to the middle of two elements the rounding decides which is the
// nearest.
template <class F>
double PlaceIn(F at, int64_t size, bool align_corners) {
  if (align_corners) return (at + 1) / 2 * static_cast<F>(size - 1);
  return ((at + 1) * static_cast<F>(size) - 1) / 2;
}

}  // namespace ag::onnx_operators
