// The definition of `resize` along each axis: the operand's elements that make up each result, and
// their weights. The reference kernel, the shape rule, the devices and the importer all use it.
// Plain data and pure functions.
//
// The place in the operand to which a result belongs is computed in f32, operation by operation as
// in ONNX Runtime: next to whole numbers these roundings decide which element is the nearest. Code
// that computes places elsewhere (generated kernels) must repeat PlaceOf exactly. A place within
// kResizeTie of the middle between two elements counts as the middle.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "graph/attributes.h"
#include "graph/types.h"

namespace ag {

// The values of the attributes mode, coordinate_transformation_mode and nearest_mode, in the order
// of Resize's enumerators.
inline constexpr std::string_view kResizeModes[] = {"nearest", "linear", "cubic"};
inline constexpr std::string_view kResizePlaces[] = {
    "half_pixel", "pytorch_half_pixel",   "align_corners",
    "asymmetric", "half_pixel_symmetric", "tf_half_pixel_for_nn"};
inline constexpr std::string_view kResizeRoundings[] = {"round_prefer_floor", "round_prefer_ceil",
                                                        "floor", "ceil"};

inline constexpr float kResizeTie = 1e-6f;

struct ResizeAxis {
  int64_t in = 1, out = 1;  // Sizes.
  float scale = 1;
  bool is_identity = true;  // Every result is the element at its own index.
};

struct Resize {
  enum class Mode : uint8_t { kNearest, kLinear, kCubic };
  enum class Places : uint8_t {
    kHalfPixel,
    kPytorchHalfPixel,
    kAlignCorners,
    kAsymmetric,
    kHalfPixelSymmetric,
    kTfHalfPixelForNn,
  };
  enum class Rounding : uint8_t { kPreferFloor, kPreferCeil, kFloor, kCeil };

  Mode mode = Mode::kNearest;
  Places places = Places::kHalfPixel;
  Rounding rounding = Rounding::kPreferFloor;
  double cubic_coeff_a = -0.75;
  bool exclude_outside = false;
  std::vector<ResizeAxis> axes;

  // Returns the number of elements along a resized axis that make up one result: 1, 2 or 4.
  int64_t taps() const { return mode == Mode::kNearest ? 1 : mode == Mode::kLinear ? 2 : 4; }
  // Returns that number over all axes.
  int64_t all_taps() const;
  // Returns true when the axes before `first` are not resized.
  bool Keeps(size_t first) const;
};

// Returns the definition for one node. REQUIRES: the attributes are those of a built node whose
// operand has the shape `in`.
Resize ResizeOf(const Attributes& attributes, const Shape& in);

// Returns the shift of all places of an axis in the symmetric mode. It centres the part of the
// scaled axis that remains after its size is rounded down.
float SymmetricOffset(const ResizeAxis& axis);
// Returns the place of a result in the operand, along one axis.
float PlaceOf(Resize::Places places, const ResizeAxis& axis, int64_t result);

// The elements and weights of the results along an axis: result i has elements[i * count + t] with
// weights[i * count + t], t < count. All elements are inside the axis. The weight of an element
// outside goes to the nearest one inside or, with exclude_outside, to all others.
struct ResizeTaps {
  int64_t count = 1;
  std::vector<int64_t> elements;
  std::vector<double> weights;
};
ResizeTaps TapsOf(const Resize& resize, size_t axis);
// Appends the taps of one more result, at `place` in the operand. REQUIRES: resize.taps() is
// taps->count; the axis has an element.
void AddTaps(const Resize& resize, const ResizeAxis& axis, float place, ResizeTaps* taps);
// Returns the weights of Keys' convolution (1981) with the free parameter a, at distances 1 + s, s,
// 1 - s, 2 - s.
std::array<double, 4> CubicWeights(double a, double s);

// The scale of an axis as a fraction; `scales` holds the numerator and denominator of each axis.
struct ResizeScale {
  int64_t over = 1, under = 1;
  bool operator==(const ResizeScale&) const = default;
};
// Whole numbers up to here are exact in f32.
inline constexpr int64_t kScaleTermMax = int64_t{1} << 24;

// Returns the one fraction for `scale`: its f32 quotient equals `scale`. kUnimplemented: its terms
// would be above kScaleTermMax, or `scale` is not above 0.
StatusOr<ResizeScale> ScaleOf(float scale);
float QuotientOf(ResizeScale scale);
// Returns the new size of an axis of `in` elements; kElementsMax + 1 when it is above kElementsMax.
int64_t ScaledSize(int64_t in, float scale);

// Brings attributes into the form of built nodes. Attributes that the mode does not use get their
// defaults. Scales are removed where they follow from the sizes, where places do not depend on
// them, or where no size changes. Places that are the same get one name. Attributes that the shape
// rule will refuse stay unchanged.
void CompleteResize(const Shape& in, Attributes* attributes);

}  // namespace ag
