#include "graph/resize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace ag {
namespace {

template <class Enum, size_t N>
Enum Named(const std::string_view (&names)[N], const std::string& name) {
  const auto found = std::find(std::begin(names), std::end(names), name);
  AG_CHECK(found != std::end(names));  // The shape rule has refused all other names.
  return static_cast<Enum>(found - std::begin(names));
}

// Returns the scale when only the sizes are given. An axis of size 0 has scale 1.
float ScaleOfSizes(int64_t in, int64_t out) {
  return in == 0 ? 1.0f : static_cast<float>(out) / static_cast<float>(in);
}

int64_t Nearest(Resize::Rounding rounding, float place) {
  const float below = std::floor(place);
  const float past = place - below;
  const float off = past - 0.5f;
  switch (rounding) {
    case Resize::Rounding::kPreferFloor:
      return static_cast<int64_t>(below) + (off > kResizeTie ? 1 : 0);
    case Resize::Rounding::kPreferCeil:
      return static_cast<int64_t>(below) + (off >= -kResizeTie ? 1 : 0);
    case Resize::Rounding::kFloor:
      return static_cast<int64_t>(below);
    case Resize::Rounding::kCeil:
      return static_cast<int64_t>(below) + (past > 0 ? 1 : 0);
  }
  return 0;
}

void AddLinear(const ResizeAxis& axis, float place, ResizeTaps* taps) {
  const int64_t last = axis.in - 1;
  const float inside = std::clamp(place, 0.0f, static_cast<float>(last));
  const auto first = static_cast<int64_t>(inside);
  const double second_weight = inside - static_cast<float>(first);
  taps->elements.insert(taps->elements.end(), {first, std::min(first + 1, last)});
  taps->weights.insert(taps->weights.end(), {1 - second_weight, second_weight});
}

void AddCubic(const Resize& resize, const ResizeAxis& axis, float place, ResizeTaps* taps) {
  const float below = std::floor(place);
  std::array<double, 4> weights = CubicWeights(resize.cubic_coeff_a, place - below);
  const int64_t first = static_cast<int64_t>(below) - 1;
  double sum = 0;
  for (int64_t t = 0; t < 4; ++t) {
    const bool is_inside = first + t >= 0 && first + t < axis.in;
    if (resize.exclude_outside && !is_inside) weights[t] = 0;
    sum += weights[t];
  }
  for (int64_t t = 0; t < 4; ++t) {
    taps->elements.push_back(std::clamp<int64_t>(first + t, 0, axis.in - 1));
    taps->weights.push_back(resize.exclude_outside ? weights[t] / sum : weights[t]);
  }
}

// Returns the scales, as simplest fractions, when they differ from what the sizes give; else
// nothing.
Ints NeededScales(const Shape& in, const Attributes& attributes) {
  const Ints& scales = attributes.IntList("scales");
  const Ints& sizes = attributes.IntList("sizes");
  if (std::equal(in.begin(), in.end(), sizes.begin())) return {};  // A copy, with any scales.
  if (attributes.String("coordinate_transformation_mode") == "align_corners") return {};
  Ints reduced;
  bool is_needed = false;
  for (size_t axis = 0; axis < in.size(); ++axis) {
    const int64_t over = scales[2 * axis], under = scales[2 * axis + 1];
    if (std::min(over, under) < 1 || std::max(over, under) > kScaleTermMax) return scales;
    const float scale = QuotientOf({over, under});
    const StatusOr<ResizeScale> simplest = ScaleOf(scale);
    if (!simplest.ok()) return scales;
    reduced.insert(reduced.end(), {simplest->over, simplest->under});
    is_needed |= in[axis] != 0 && scale != ScaleOfSizes(in[axis], sizes[axis]);
  }
  return is_needed ? reduced : Ints();
}

// Whether the two half-pixel modes differ: only where an axis has one result.
bool HasSingleResult(const Shape& in, const Ints& sizes, const Ints& scales) {
  for (size_t i = 0; i < in.size(); ++i) {
    const bool is_unscaled = scales.size() != 2 * in.size() || scales[2 * i] == scales[2 * i + 1];
    if (sizes[i] == 1 && !(in[i] == 1 && is_unscaled)) return true;
  }
  return false;
}

}  // namespace

int64_t Resize::all_taps() const {
  int64_t all = 1;
  for (const ResizeAxis& axis : axes) all *= axis.is_identity ? 1 : taps();
  return all;
}

bool Resize::Keeps(size_t first) const {
  return std::all_of(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(first),
                     [](const ResizeAxis& axis) { return axis.is_identity; });
}

Resize ResizeOf(const Attributes& attributes, const Shape& in) {
  Resize resize;
  resize.mode = Named<Resize::Mode>(kResizeModes, attributes.String("mode"));
  resize.places =
      Named<Resize::Places>(kResizePlaces, attributes.String("coordinate_transformation_mode"));
  resize.rounding = Named<Resize::Rounding>(kResizeRoundings, attributes.String("nearest_mode"));
  resize.cubic_coeff_a = attributes.Float("cubic_coeff_a");
  resize.exclude_outside = attributes.Int("exclude_outside") != 0;
  const Ints& sizes = attributes.IntList("sizes");
  const Ints& scales = attributes.IntList("scales");
  for (size_t i = 0; i < in.size(); ++i) {
    ResizeAxis axis{.in = in[i], .out = sizes[i]};
    axis.scale = scales.empty() ? ScaleOfSizes(axis.in, axis.out)
                                : QuotientOf({scales[2 * i], scales[2 * i + 1]});
    axis.is_identity = axis.in == axis.out && (axis.in == 0 || axis.scale == 1);
    resize.axes.push_back(axis);
  }
  return resize;
}

float SymmetricOffset(const ResizeAxis& axis) {
  const float whole = axis.scale * static_cast<float>(axis.in);
  const float adjustment = static_cast<float>(axis.out) / whole;
  return static_cast<float>(axis.in) / 2 * (1 - adjustment);
}

float PlaceOf(Resize::Places places, const ResizeAxis& axis, int64_t result) {
  const auto at = static_cast<float>(result);
  switch (places) {
    case Resize::Places::kHalfPixel:
      return (at + 0.5f) / axis.scale - 0.5f;
    case Resize::Places::kPytorchHalfPixel:
      return axis.out > 1 ? (at + 0.5f) / axis.scale - 0.5f : 0.0f;
    case Resize::Places::kAlignCorners:
      if (axis.out == 1) return 0;
      return at * static_cast<float>(axis.in - 1) / static_cast<float>(axis.out - 1);
    case Resize::Places::kAsymmetric:
      return at / axis.scale;
    case Resize::Places::kHalfPixelSymmetric:
      return static_cast<float>(SymmetricOffset(axis) + (at + 0.5) / axis.scale - 0.5);
    case Resize::Places::kTfHalfPixelForNn:
      return (at + 0.5f) / axis.scale;
  }
  return 0;
}

std::array<double, 4> CubicWeights(double a, double s) {
  const auto near = [a](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
  const auto far = [a](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
  return {far(1 + s), near(s), near(1 - s), far(2 - s)};
}

void AddTaps(const Resize& resize, const ResizeAxis& axis, float place, ResizeTaps* taps) {
  if (resize.mode == Resize::Mode::kNearest) {
    const int64_t nearest = Nearest(resize.rounding, place);
    taps->elements.push_back(std::clamp<int64_t>(nearest, 0, axis.in - 1));
    taps->weights.push_back(1);
  } else if (resize.mode == Resize::Mode::kLinear) {
    AddLinear(axis, place, taps);
  } else {
    AddCubic(resize, axis, place, taps);
  }
}

ResizeTaps TapsOf(const Resize& resize, size_t axis) {
  const ResizeAxis& a = resize.axes[axis];
  ResizeTaps taps{.count = a.is_identity ? 1 : resize.taps()};
  for (int64_t i = 0; i < a.out; ++i) {
    if (a.is_identity) {
      taps.elements.push_back(i);
      taps.weights.push_back(1);
    } else {
      AddTaps(resize, a, PlaceOf(resize.places, a, i), &taps);
    }
  }
  return taps;
}

// Tries the convergents of the continued fraction until the f32 quotient of one equals `scale`.
StatusOr<ResizeScale> ScaleOf(float scale) {
  ResizeScale before{0, 1}, found{1, 0};
  double rest = scale;
  while (rest >= 0 && rest <= static_cast<double>(kScaleTermMax)) {
    const auto whole = static_cast<int64_t>(rest);
    const ResizeScale next{whole * found.over + before.over, whole * found.under + before.under};
    before = std::exchange(found, next);
    if (std::max(found.over, found.under) > kScaleTermMax) break;
    if (found.over > 0 && QuotientOf(found) == scale) return found;
    if (rest == static_cast<double>(whole)) break;
    rest = 1 / (rest - static_cast<double>(whole));
  }
  return Err(StatusCode::kUnimplemented, "scale {} is no fraction of numbers up to 2^24", scale);
}

float QuotientOf(ResizeScale scale) {
  return static_cast<float>(scale.over) / static_cast<float>(scale.under);
}

int64_t ScaledSize(int64_t in, float scale) {
  const float size = scale * static_cast<float>(in);
  return size <= static_cast<float>(kElementsMax) ? static_cast<int64_t>(size) : kElementsMax + 1;
}

void CompleteResize(const Shape& in, Attributes* attributes) {
  const std::string mode = attributes->String("mode");
  if (mode != "nearest") attributes->Set("nearest_mode", std::string(kResizeRoundings[0]));
  if (mode != "cubic") attributes->Set("cubic_coeff_a", -0.75);
  const bool excludes = mode == "cubic" && attributes->Int("exclude_outside") != 0;
  attributes->Set("exclude_outside", int64_t{excludes});
  const Ints sizes = attributes->IntList("sizes");
  if (sizes.size() != in.size()) return;
  if (attributes->IntList("scales").size() == 2 * in.size()) {
    attributes->Set("scales", NeededScales(in, *attributes));
  }
  const bool is_pytorch = attributes->String("coordinate_transformation_mode") == kResizePlaces[1];
  if (is_pytorch && !HasSingleResult(in, sizes, attributes->IntList("scales"))) {
    attributes->Set("coordinate_transformation_mode", std::string(kResizePlaces[0]));
  }
}

}  // namespace ag
