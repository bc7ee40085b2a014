// Resize and its predecessor Upsample, one axis after the other. graph/resize.h has the places and
// weights that these share with the IR's operator; here are crops, smoothing filters and the ways
// to state sizes that the IR lacks.
#include "graph/resize.h"

#include <algorithm>
#include <cmath>

#include "graph/onnx/operators/layout.h"
#include "graph/onnx/operators/operator_call.h"
#include "graph/onnx/operators/spatial_window.h"
#include "graph/onnx/operators/wide.h"

namespace ag::onnx_operators {
namespace {

using Doubles = std::vector<double>;

struct Resampling {
  Resize resize;
  std::vector<float> starts, ends;  // Of the part of each axis that a crop takes, in [0, 1].
  bool crops = false, smooths = false;
  bool by_direction = false;  // Axes that grow round down, others up.
  double extrapolation = 0;   // What is outside in a crop.

  bool IsIdentity(size_t axis) const {
    return resize.axes[axis].is_identity && (!crops || (starts[axis] == 0 && ends[axis] == 1));
  }
};

template <class Enum, size_t N>
Status ReadName(OperatorCall& call, std::string_view attribute, const std::string_view (&names)[N],
                Enum* value) {
  const std::string name = call.String(attribute, names[0]);
  const auto found = std::ranges::find(names, name);
  if (found == std::end(names)) {
    return Err(StatusCode::kInvalidArgument, "{} {} is not known", attribute, Quoted(name));
  }
  *value = static_cast<Enum>(found - std::begin(names));
  return OkStatus();
}

// Returns the axes to which operands and policy refer.
StatusOr<Ints> ResizedAxes(OperatorCall& call) {
  Ints axes(static_cast<size_t>(call.Rank(0)));
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int64_t>(i);
  if (call.opset() < 18) return axes;
  AG_LET(axes, ResolveAxes(call.IntList("axes").value_or(axes), call.Rank(0)));
  Ints sorted = axes;
  std::ranges::sort(sorted);
  if (std::ranges::adjacent_find(sorted) == sorted.end()) return axes;
  return Err(StatusCode::kInvalidArgument, "axes: one is named twice");
}

// Returns the numbers of operand `i`; none when it is omitted or empty.
StatusOr<std::vector<float>> NumbersAt(const OperatorCall& call, size_t i, size_t count) {
  if (!call.Has(i) || call.Type(i).NumElements() == 0) return std::vector<float>{};
  const Doubles values = call.In(i).ToDoubles();
  if (values.size() == count) return std::vector<float>(values.begin(), values.end());
  return Err(StatusCode::kInvalidArgument, "input {}: expected {} values, got {}", i, count,
             values.size());
}

// Sets an axis to `scale` times its size.
Status ScaleAxis(float scale, ResizeAxis* axis) {
  if (!(scale > 0) || std::isinf(scale)) {
    return Err(StatusCode::kInvalidArgument, "scale {} is not above 0", scale);
  }
  axis->scale = scale;
  axis->out = ScaledSize(axis->in, scale);
  return OkStatus();
}

// Sets the axes from sizes. A policy other than "stretch" keeps the ratio of the sizes: all axes
// get the least or the largest scale.
Status SizeAxes(OperatorCall& call, const Ints& axes, const Ints& sizes, Resize& resize) {
  const std::string policy =
      call.opset() < 18 ? "stretch" : call.String("keep_aspect_ratio_policy", "stretch");
  const bool smaller = policy == "not_larger";
  if (!smaller && policy != "not_smaller" && policy != "stretch") {
    return Err(StatusCode::kInvalidArgument, "keep_aspect_ratio_policy {} is not known",
               Quoted(policy));
  }
  float kept = smaller ? INFINITY : 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    ResizeAxis& axis = resize.axes[static_cast<size_t>(axes[i])];
    axis.out = sizes[i];
    axis.scale = axis.in == 0 ? 1 : static_cast<float>(axis.out) / static_cast<float>(axis.in);
    kept = smaller ? std::min(kept, axis.scale) : std::max(kept, axis.scale);
  }
  for (size_t i = 0; i < axes.size() && policy != "stretch"; ++i) {
    ResizeAxis& axis = resize.axes[static_cast<size_t>(axes[i])];
    const float size = std::round(kept * static_cast<float>(axis.in));
    axis.scale = kept;
    axis.out = size <= static_cast<float>(kElementsMax) ? static_cast<int64_t>(size) : -1;
  }
  return OkStatus();
}

// Reads operands 2 and 3, of which one has values.
Status ReadSizes(OperatorCall& call, const Ints& axes, Resize& resize) {
  AG_LET(const std::vector<float> scales, NumbersAt(call, 2, axes.size()));
  Ints sizes;
  if (call.Has(3)) {
    AG_LET(sizes, call.IntsAt(3));
  }
  if (scales.empty() == sizes.empty() && !axes.empty()) {
    return Err(StatusCode::kInvalidArgument, "expected scales or sizes, got {}",
               scales.empty() ? "neither" : "both");
  }
  if (scales.empty() && sizes.size() != axes.size()) {
    return Err(StatusCode::kInvalidArgument, "sizes: expected {} values, got {}", axes.size(),
               sizes.size());
  }
  if (scales.empty()) return SizeAxes(call, axes, sizes, resize);
  call.Ignore("keep_aspect_ratio_policy");
  for (size_t i = 0; i < axes.size(); ++i) {
    AG_TRY(ScaleAxis(scales[i], &resize.axes[static_cast<size_t>(axes[i])]));
  }
  return OkStatus();
}

Status ReadCrop(OperatorCall& call, const Ints& axes, Resampling& plan) {
  plan.crops = true;
  plan.extrapolation = call.Float("extrapolation_value", 0);
  AG_LET(const std::vector<float> roi, NumbersAt(call, 1, 2 * axes.size()));
  if (roi.empty() && !axes.empty()) {
    return Err(StatusCode::kInvalidArgument, "input 1 is missing, which says what to crop");
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    plan.starts[static_cast<size_t>(axes[i])] = roi[i];
    plan.ends[static_cast<size_t>(axes[i])] = roi[axes.size() + i];
  }
  return OkStatus();
}

void StartAxes(const OperatorCall& call, Resampling& plan) {
  for (const int64_t size : call.ShapeOf(0)) plan.resize.axes.push_back({.in = size, .out = size});
  plan.starts.assign(plan.resize.axes.size(), 0);
  plan.ends.assign(plan.resize.axes.size(), 1);
}

StatusOr<Resampling> ReadResampling(OperatorCall& call) {
  AG_TRY(call.CheckInputs(1, 4));
  Resampling plan;
  StartAxes(call, plan);
  Resize& resize = plan.resize;
  AG_TRY(ReadName(call, "mode", kResizeModes, &resize.mode));
  AG_TRY(ReadName(call, "nearest_mode", kResizeRoundings, &resize.rounding));
  resize.cubic_coeff_a = call.Float("cubic_coeff_a", -0.75);
  resize.exclude_outside = call.Int("exclude_outside", 0) != 0;
  if (call.opset() >= 18) plan.smooths = call.Int("antialias", 0) != 0;
  plan.smooths = plan.smooths && resize.mode != Resize::Mode::kNearest;
  AG_LET(const Ints axes, ResizedAxes(call));
  const std::string_view places = "coordinate_transformation_mode";
  if (call.String(places, "half_pixel") == "tf_crop_and_resize") {
    AG_TRY(ReadCrop(call, axes, plan));
  } else {
    call.Ignore("extrapolation_value");
    AG_TRY(ReadName(call, places, kResizePlaces, &resize.places));
  }
  AG_TRY(ReadSizes(call, axes, resize));
  return plan;
}

// Before opset 11 places are asymmetric, and every axis has its scale.
StatusOr<Resampling> ReadOldResampling(OperatorCall& call, const std::vector<float>& scales) {
  Resampling plan{.by_direction = true};
  StartAxes(call, plan);
  AG_TRY(ReadName(call, "mode", kResizeModes, &plan.resize.mode));
  plan.resize.places = Resize::Places::kAsymmetric;
  if (scales.size() != plan.resize.axes.size()) {
    return Err(StatusCode::kInvalidArgument, "expected {} scales, got {}", plan.resize.axes.size(),
               scales.size());
  }
  for (size_t i = 0; i < scales.size(); ++i) AG_TRY(ScaleAxis(scales[i], &plan.resize.axes[i]));
  return plan;
}

// The taps of an axis, and which of its results are outside of a crop.
struct AxisPlan {
  ResizeTaps taps;
  std::vector<bool> outside;
};

// Returns the place of a result in a crop.
float CroppedPlace(float start, float end, const ResizeAxis& axis, int64_t result) {
  const auto last = static_cast<float>(axis.in - 1);
  if (axis.out <= 1) return 0.5f * (start + end) * last;
  return start * last +
         static_cast<float>(result) * (end - start) * last / static_cast<float>(axis.out - 1);
}

// Returns the filter of the mode at a distance in elements, stretched by 1 / shrink.
double Filter(const Resize& resize, double distance, double shrink) {
  const double d = std::fabs(distance) * shrink;
  if (resize.mode == Resize::Mode::kLinear) return std::max(1 - d, 0.0);
  if (d < 1) return CubicWeights(resize.cubic_coeff_a, d)[1];
  return d < 2 ? CubicWeights(resize.cubic_coeff_a, d - 1)[0] : 0;
}

// Appends the taps of one result of a shrinking axis: `taps->count` elements around the place. The
// weight of an element outside goes to the border or, with exclude_outside, to all others.
void AddSmoothTaps(const Resize& resize, const ResizeAxis& axis, float place, ResizeTaps* taps) {
  const double at = place;
  const int64_t first = static_cast<int64_t>(std::floor(at)) - taps->count / 2 + 1;
  Doubles weights;
  double sum = 0;
  for (int64_t i = first; i < first + taps->count; ++i) {
    const bool counts = !resize.exclude_outside || (i >= 0 && i < axis.in);
    weights.push_back(counts ? Filter(resize, static_cast<double>(i) - at, axis.scale) : 0);
    sum += weights.back();
  }
  for (int64_t i = 0; i < taps->count; ++i) {
    taps->elements.push_back(std::clamp<int64_t>(first + i, 0, axis.in - 1));
    taps->weights.push_back(weights[static_cast<size_t>(i)] / sum);
  }
}

constexpr double kSmoothTapsMax = 1 << 26;

StatusOr<AxisPlan> PlanAxis(const Resampling& plan, size_t index) {
  const ResizeAxis& axis = plan.resize.axes[index];
  if (axis.in == 0 && axis.out > 0) {
    return Err(StatusCode::kInvalidArgument, "axis {} has no elements to make {} of", index,
               axis.out);
  }
  Resize resize = plan.resize;
  if (plan.by_direction) {
    resize.rounding = axis.scale < 1 ? Resize::Rounding::kCeil : Resize::Rounding::kFloor;
  }
  AxisPlan result{.taps = {.count = resize.taps()}};
  const bool smooths = plan.smooths && axis.scale < 1;
  if (smooths) {
    const double reach = (resize.mode == Resize::Mode::kLinear ? 1.0 : 2.0) / axis.scale;
    if (2 * (reach + 1) * static_cast<double>(axis.out) > kSmoothTapsMax) {
      return Err(StatusCode::kResourceExhausted, "axis {}: a filter of {} elements", index, reach);
    }
    result.taps.count = 2 * static_cast<int64_t>(std::ceil(reach));
  }
  for (int64_t i = 0; i < axis.out; ++i) {
    float place = plan.crops ? CroppedPlace(plan.starts[index], plan.ends[index], axis, i)
                             : PlaceOf(resize.places, axis, i);
    if (plan.crops) {
      result.outside.push_back(!(place >= 0 && place <= static_cast<float>(axis.in - 1)));
      if (result.outside.back()) place = 0;
    }
    if (smooths) {
      AddSmoothTaps(resize, axis, place, &result.taps);
    } else {
      AddTaps(resize, axis, place, &result.taps);
    }
  }
  return result;
}

// Returns sums of the elements along an axis, by its taps.
Doubles Weighted(const Doubles& in, const AxisView& view, const ResizeTaps& taps) {
  const auto results = static_cast<int64_t>(taps.elements.size()) / taps.count;
  Doubles out(static_cast<size_t>(view.outer * results * view.inner));
  for (int64_t line = 0; line < view.outer * results; ++line) {
    double* to = out.data() + line * view.inner;
    for (int64_t t = line % results * taps.count; t < (line % results + 1) * taps.count; ++t) {
      const double weight = taps.weights[static_cast<size_t>(t)];
      const int64_t element = taps.elements[static_cast<size_t>(t)];
      const double* from = in.data() + view.At(line / results, element, 0);
      for (int64_t k = 0; k < view.inner; ++k) to[k] += weight * from[k];
    }
  }
  return out;
}

// Returns the elements, of `width` bytes, that an axis takes one of for each result.
std::vector<char> Chosen(const std::vector<char>& in, const AxisView& view, const ResizeTaps& taps,
                         int64_t width) {
  std::vector<char> out;
  for (int64_t outer = 0; outer < view.outer; ++outer) {
    for (const int64_t element : taps.elements) {
      const auto from = in.begin() + view.At(outer, element, 0) * width;
      out.insert(out.end(), from, from + view.inner * width);
    }
  }
  return out;
}

// Overwrites what is outside of a crop along any axis.
void WriteOutside(const Resampling& plan, const std::vector<AxisPlan>& axes, const TensorType& type,
                  char* bytes) {
  const int64_t width = SizeOf(type.dtype);
  const Tensor value =
      Tensor::FromDoubles({type.dtype, {}}, std::vector<double>{plan.extrapolation});
  ForPositions(Ints(type.shape.begin(), type.shape.end()), [&](const Ints& at, int64_t offset) {
    for (size_t i = 0; i < axes.size(); ++i) {
      if (axes[i].outside.empty() || !axes[i].outside[static_cast<size_t>(at[i])]) continue;
      return FillWith(value.bytes().data(), width, 1, bytes + offset * width);
    }
  });
}

// Resizes axis after axis, those that shrink first: no step is larger than operand and result.
template <class Values, class Step>
Values ResizeAxes(const Resampling& plan, const std::vector<AxisPlan>& axes, Shape shape,
                  Values values, const Step& step) {
  for (const bool shrinking : {true, false}) {
    for (size_t i = 0; i < axes.size(); ++i) {
      const ResizeAxis& axis = plan.resize.axes[i];
      if (plan.IsIdentity(i) || (axis.out < axis.in) != shrinking) continue;
      values = step(values, ViewAlong(shape, static_cast<int64_t>(i)), axes[i].taps);
      shape[i] = axis.out;
    }
  }
  return values;
}

// Integers are cut off, after smoothing rounded, as in ONNX Runtime.
Status Resample(OperatorCall& call, Resampling& plan) {
  TensorType type{call.TypeOf(0), {}};
  for (ResizeAxis& axis : plan.resize.axes) {
    axis.is_identity = axis.in == axis.out && (axis.in == 0 || axis.scale == 1);
    type.shape.push_back(axis.out);
  }
  AG_LET(char* bytes, call.MakeBytes(0, type));
  if (type.NumElements() == 0) return OkStatus();
  if (!plan.crops && type == call.Type(0)) {  // The scales do not matter.
    call.Give(0, call.In(0));
    return OkStatus();
  }
  std::vector<AxisPlan> axes(type.shape.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    if (plan.IsIdentity(i)) continue;
    AG_LET(axes[i], PlanAxis(plan, i));
  }
  const Shape& in = call.ShapeOf(0);
  if (plan.resize.mode == Resize::Mode::kNearest) {
    const int64_t width = SizeOf(type.dtype);
    const std::string_view from = call.In(0).bytes();
    const std::vector<char> out =
        ResizeAxes(plan, axes, in, std::vector<char>(from.begin(), from.end()),
                   [&](const std::vector<char>& values, const AxisView& view,
                       const ResizeTaps& taps) { return Chosen(values, view, taps, width); });
    std::ranges::copy(out, bytes);
  } else {
    Doubles out = ResizeAxes(plan, axes, in, call.In(0).ToDoubles(), Weighted);
    if (plan.smooths && !IsFloat(type.dtype)) {
      for (double& value : out) value = std::round(value);
    }
    AG_TRY(GiveNarrowed(call, 0, type, out));
    bytes = call.results()[0].Mutable<char>().data();
  }
  if (plan.crops) WriteOutside(plan, axes, type, bytes);
  return OkStatus();
}

Status RunResize(OperatorCall& call) {
  if (call.opset() >= 11) {
    AG_LET(Resampling plan, ReadResampling(call));
    return Resample(call, plan);
  }
  AG_TRY(call.CheckInputs(2, 2));
  AG_LET(const std::vector<float> scales, NumbersAt(call, 1, static_cast<size_t>(call.Rank(0))));
  AG_LET(Resampling plan, ReadOldResampling(call, scales));
  return Resample(call, plan);
}

// Scales are an operand since opset 9. Opset 10 has Resize instead.
Status RunUpsample(OperatorCall& call) {
  if (call.opset() == 9) return RunResize(call);
  if (call.opset() > 9) {
    return Err(StatusCode::kUnimplemented, "opset {} has no such operator", call.opset());
  }
  AG_TRY(call.CheckInputs(1, 1));
  AG_LET(Resampling plan,
         ReadOldResampling(call, call.FloatList("scales").value_or(std::vector<float>{})));
  return Resample(call, plan);
}

}  // namespace

std::span<const OperatorRow> ResampleOperators() {
  static constexpr OperatorRow kRows[] = {
      {"Resize", RunResize, FromOperands({1, 2, 3})},
      {"Upsample", RunUpsample, FromOperands({1})},
  };
  return kRows;
}

}  // namespace ag::onnx_operators
