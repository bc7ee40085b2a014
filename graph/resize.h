// What `resize` means along each axis: which elements a result is made of, and with which weights.
// The reference kernel, the shape rule, devices and the importer all ask here. Plain values and
// pure functions.
//
// The place in the operand that a result belongs to is worked out in f32, operation by operation as
// ONNX Runtime does it: beside whole numbers these roundings decide which element is the nearest
// one. Who works places out anew (generated kernels) repeats PlaceOf to the letter. Of two elements
// that are equally far but for kResizeTie none is nearer.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "graph/attributes.h"
#include "graph/types.h"

namespace ag {

// The words of the attributes mode, coordinate_transformation_mode and nearest_mode, in the order
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
  bool is_identity = true;  // Every result is the element of its own place.
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

  // Elements along a resized axis that a result is made of: 1, 2 or 4.
  int64_t taps() const { return mode == Mode::kNearest ? 1 : mode == Mode::kLinear ? 2 : 4; }
  // The same over all axes.
  int64_t all_taps() const;
  // Whether images stay whole and in their order: the axes before `first` are not resized.
  bool Keeps(size_t first) const;
};

// REQUIRES: the attributes are those of a built node whose operand has the shape `in`.
Resize ResizeOf(const Attributes& attributes, const Shape& in);

// How the symmetric form moves all places of an axis: by centring what rounding down left out.
float SymmetricOffset(const ResizeAxis& axis);
float PlaceOf(Resize::Places places, const ResizeAxis& axis, int64_t result);

// Of result i along an axis, elements[i * count + t] with weights[i * count + t], t < count. All
// elements are inside; a weight of one outside has gone to the nearest inside (or, where these are
// excluded, to all others).
struct ResizeTaps {
  int64_t count = 1;
  std::vector<int64_t> elements;
  std::vector<double> weights;
};
ResizeTaps TapsOf(const Resize& resize, size_t axis);

// The factors of an axis as fractions: `scales` holds numerator and denominator of each axis.
struct ResizeScale {
  int64_t over = 1, under = 1;
  bool operator==(const ResizeScale&) const = default;
};
inline constexpr int64_t kScaleTermMax = int64_t{1} << 24;  // Whole numbers up to here are f32.

// The one fraction that stands for `scale`: its f32 quotient is `scale` again. kUnimplemented: its
// terms would be above kScaleTermMax, or `scale` is not above 0.
StatusOr<ResizeScale> ScaleOf(float scale);
float QuotientOf(ResizeScale scale);
// The size that an axis of `in` elements gets; kElementsMax + 1 when it is above that.
int64_t ScaledSize(int64_t in, float scale);

// Brings attributes into the form of built nodes: what the mode does not ask for has its default;
// no scales where they follow from the sizes, or places do not depend on them, or no size changes;
// one name for places that are the same. Leaves alone what the shape rule is going to refuse.
void CompleteResize(const Shape& in, Attributes* attributes);

}  // namespace ag
