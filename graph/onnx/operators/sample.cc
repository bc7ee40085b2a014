// Values at places that an operand says: GridSample, AffineGrid and DeformConv.
#include <algorithm>
#include <cmath>

#include "graph/onnx/operators/operator_call.h"
#include "graph/onnx/operators/sampling.h"
#include "graph/onnx/operators/spatial_window.h"
#include "graph/onnx/operators/taps.h"
#include "graph/onnx/operators/wide.h"

namespace ag::onnx_operators {
namespace {

using Doubles = std::vector<double>;

StatusOr<TensorType> SampledType(const OperatorCall& call) {
  const Shape &x = call.ShapeOf(0), &grid = call.ShapeOf(1);
  const auto axes = static_cast<int64_t>(x.size()) - 2;
  if (axes < 1 || grid.size() != x.size() || grid[0] != x[0] || grid.back() != axes) {
    return Err(StatusCode::kInvalidArgument, "the grid {} does not fit {}", call.Type(1).ToString(),
               call.Type(0).ToString());
  }
  if (!IsFloat(call.TypeOf(1))) return RefuseType(call.TypeOf(1));
  return TensorType{call.TypeOf(0),
                    WithSpatial(x[0], x[1], Ints(grid.begin() + 1, grid.end() - 1))};
}

// Calls visit(batch item, position, taps) for each position of the grid.
template <class Visit>
void ForGrid(const OperatorCall& call, const Sampling& sampling, Visit&& visit) {
  const Shape& x = call.ShapeOf(0);
  const std::span<const int64_t> sizes = std::span(x).subspan(2);
  const auto axes = static_cast<int64_t>(sizes.size());
  const int64_t positions = call.Type(1).NumElements() / std::max<int64_t>(x[0] * axes, 1);
  const bool is_double = call.TypeOf(1) == DType::kFloat64;
  std::vector<AxisTaps> by_axis(sizes.size());
  std::vector<Tap> taps;
  for (int64_t row = 0; row < x[0] * positions; ++row) {
    for (int64_t axis = 0; axis < axes; ++axis) {  // The grid has the last axis first.
      const double at = call.NumberAt(1, row * axes + axes - 1 - axis);
      const int64_t size = sizes[static_cast<size_t>(axis)];
      const double place =
          is_double ? PlaceIn<double>(at, size, sampling.align_corners)
                    : PlaceIn<float>(static_cast<float>(at), size, sampling.align_corners);
      by_axis[static_cast<size_t>(axis)] = TapsAt(sampling, place, size);
    }
    CombineTaps(by_axis, sizes, taps);
    visit(row / positions, row % positions, taps);
  }
}

Status RunGridSample(OperatorCall& call) {
  AG_TRY(call.CheckInputs(2, 2));
  AG_LET(const Sampling sampling, ReadSampling(call));
  AG_LET(const TensorType type, SampledType(call));
  AG_TRY(CheckTaps(sampling.taps, type.shape.size() - 2));
  AG_LET(char* bytes, call.MakeBytes(0, type));
  const int64_t channels = type.shape[1];
  const int64_t inside = NumElements(std::span(call.ShapeOf(0)).subspan(2));
  const int64_t positions = NumElements(std::span(type.shape).subspan(2));
  if (sampling.taps == 1) {  // Moves elements of any type.
    const int64_t width = SizeOf(type.dtype);
    const char* from = call.In(0).bytes().data();
    ForGrid(call, sampling, [&](int64_t n, int64_t p, const std::vector<Tap>& taps) {
      for (int64_t plane = n * channels; !taps.empty() && plane < (n + 1) * channels; ++plane) {
        std::copy_n(from + (plane * inside + taps[0].offset) * width, width,
                    bytes + (plane * positions + p) * width);
      }
    });
    return OkStatus();
  }
  const Doubles in = call.In(0).ToDoubles();
  Doubles out(static_cast<size_t>(type.NumElements()));
  ForGrid(call, sampling, [&](int64_t n, int64_t p, const std::vector<Tap>& taps) {
    for (int64_t plane = n * channels; plane < (n + 1) * channels; ++plane) {
      double& to = out[static_cast<size_t>(plane * positions + p)];
      for (const Tap& tap : taps) {
        to += in[static_cast<size_t>(plane * inside + tap.offset)] * tap.weight;
      }
    }
  });
  return GiveNarrowed(call, 0, type, out);
}

// Returns the coordinates in [-1, 1] of the positions along an axis. With align_corners the first
// and the last are the ends; a single position is at 1, as in ONNX Runtime.
Doubles Coordinates(int64_t size, bool align_corners) {
  Doubles at;
  for (int64_t i = 0; i < size; ++i) {
    const double last = static_cast<double>(align_corners ? size - 1 : size);
    const double twice = static_cast<double>(align_corners ? 2 * i : 2 * i + 1);
    at.push_back(last == 0 ? 1 : twice / last - 1);
  }
  return at;
}

// Maps each position of an image, as coordinates in [-1, 1], by the matrix of its batch item.
Status RunAffineGrid(OperatorCall& call) {
  AG_TRY(call.CheckInputs(2, 2));
  if (!IsFloat(call.TypeOf(0))) return RefuseType(call.TypeOf(0));
  AG_LET(const Ints size, call.IntsAt(1));
  const auto axes = static_cast<int64_t>(size.size()) - 2;
  if ((axes != 2 && axes != 3) || call.ShapeOf(0) != Shape{size[0], axes, axes + 1}) {
    return Err(StatusCode::kInvalidArgument, "theta {} does not fit {} sizes",
               call.Type(0).ToString(), size.size());
  }
  const bool align_corners = call.Int("align_corners", 0) != 0;
  const Ints spatial(size.begin() + 2, size.end());
  TensorType type{call.TypeOf(0), {size[0]}};
  type.shape.insert(type.shape.end(), spatial.begin(), spatial.end());
  type.shape.push_back(axes);
  AG_TRY(call.MakeBytes(0, type));  // Checks the sizes.
  if (type.NumElements() == 0) return OkStatus();
  std::vector<Doubles> along;
  for (const int64_t s : spatial) along.push_back(Coordinates(s, align_corners));
  const Doubles theta = call.In(0).ToDoubles();
  Doubles out;
  for (int64_t n = 0; n < size[0]; ++n) {
    ForPositions(spatial, [&](const Ints& position, int64_t) {
      for (int64_t row = 0; row < axes; ++row) {
        const double* by = theta.data() + (n * axes + row) * (axes + 1);
        double sum = by[axes];
        for (int64_t k = 0; k < axes; ++k) {  // The last axis is x, the first coordinate.
          const auto axis = static_cast<size_t>(axes - 1 - k);
          sum += by[k] * along[axis][static_cast<size_t>(position[axis])];
        }
        out.push_back(sum);
      }
    });
  }
  return GiveNarrowed(call, 0, type, out);
}

// A deformable convolution: operands x, w, offset, and perhaps bias and mask.
struct Deformed {
  SpatialWindow window;
  int64_t groups = 1, offset_groups = 1;
  int64_t kernel = 1, places = 1;  // Elements of a window, and windows.
  Doubles x, w, offset, bias, mask;
};

Status CheckDeformed(const OperatorCall& call, size_t i, const Shape& expected) {
  if (!call.Has(i) || call.ShapeOf(i) == expected) return OkStatus();
  return Err(StatusCode::kInvalidArgument, "input {}: expected {}, got {}", i,
             ShapeToString(expected), call.Type(i).ToString());
}

StatusOr<Deformed> ReadDeformed(OperatorCall& call) {
  AG_TRY(call.CheckInputs(3, 5));
  if (!IsFloat(call.TypeOf(0))) return RefuseType(call.TypeOf(0));
  Deformed conv{.groups = call.Int("group", 1), .offset_groups = call.Int("offset_group", 1)};
  const Shape &x = call.ShapeOf(0), &w = call.ShapeOf(1);
  if (x.size() < 3 || w.size() != x.size() || conv.groups < 1 || conv.offset_groups < 1 ||
      x[1] % conv.groups != 0 || w[1] != x[1] / conv.groups || w[0] % conv.groups != 0 ||
      x[1] % conv.offset_groups != 0) {
    return Err(StatusCode::kInvalidArgument, "{} groups, {} offset groups: {} does not fit {}",
               conv.groups, conv.offset_groups, call.Type(1).ToString(), call.Type(0).ToString());
  }
  AG_LET(conv.window, ReadWindow(call, Ints(w.begin() + 2, w.end())));
  AG_TRY(PlaceWindow(call, conv.window));
  AG_TRY(CheckTaps(2, conv.window.axes()));
  const auto axes = static_cast<int64_t>(conv.window.axes());
  conv.kernel = NumElements(conv.window.kernel);
  conv.places = NumElements(conv.window.out);
  if (conv.kernel > kElementsMax / axes / conv.offset_groups) {
    return Err(StatusCode::kInvalidArgument, "{} offset groups of kernels {}", conv.offset_groups,
               ShapeToString(conv.window.kernel));
  }
  const int64_t each = conv.offset_groups * conv.kernel;
  AG_TRY(CheckDeformed(call, 2, WithSpatial(x[0], each * axes, conv.window.out)));
  AG_TRY(CheckDeformed(call, 3, {w[0]}));
  AG_TRY(CheckDeformed(call, 4, WithSpatial(x[0], each, conv.window.out)));
  conv.x = call.In(0).ToDoubles();
  conv.w = call.In(1).ToDoubles();
  conv.offset = call.In(2).ToDoubles();
  if (call.Has(3)) conv.bias = call.In(3).ToDoubles();
  if (call.Has(4)) conv.mask = call.In(4).ToDoubles();
  return conv;
}

// One element of a window: batch item, offset group, element and place.
struct DeformedElement {
  int64_t n = 0, group = 0, e = 0, p = 0;
};

// Sets `taps` to what the element sees in a plane, with its mask.
void TapsOfElement(const Deformed& conv, const DeformedElement& at, const Ints& place,
                   const Ints& element, std::vector<Tap>& taps) {
  const SpatialWindow& window = conv.window;
  const size_t axes = window.axes();
  const int64_t first =
      (at.n * conv.offset_groups + at.group) * conv.kernel + at.e;  // Of offsets and of masks.
  std::vector<AxisTaps> by_axis(axes);
  for (size_t i = 0; i < axes; ++i) {
    const int64_t row = first * static_cast<int64_t>(axes) + static_cast<int64_t>(i);
    const auto regular = static_cast<double>(place[i] * window.strides[i] - window.begin[i] +
                                             element[i] * window.dilations[i]);
    const double moved = conv.offset[static_cast<size_t>(row * conv.places + at.p)];
    by_axis[i] = TapsAt({}, regular + moved, window.in[i]);
  }
  CombineTaps(by_axis, window.in, taps);
  if (conv.mask.empty()) return;
  for (Tap& tap : taps) tap.weight *= conv.mask[static_cast<size_t>(first * conv.places + at.p)];
}

// Adds what one element of the window sees in one offset group to all channels of the result.
void AddElement(const OperatorCall& call, const Deformed& conv, const DeformedElement& at,
                const std::vector<Tap>& taps, Doubles& out) {
  const int64_t in_channels = call.ShapeOf(0)[1], out_channels = call.ShapeOf(1)[0];
  const int64_t inside = NumElements(conv.window.in);
  const int64_t in_of_group = in_channels / conv.groups, out_of_group = out_channels / conv.groups;
  const int64_t each = in_channels / conv.offset_groups;
  for (int64_t c = at.group * each; c < (at.group + 1) * each; ++c) {
    const double* plane = conv.x.data() + (at.n * in_channels + c) * inside;
    double seen = 0;
    for (const Tap& tap : taps) seen += plane[tap.offset] * tap.weight;
    const int64_t first = c / in_of_group * out_of_group;
    for (int64_t o = first; o < first + out_of_group; ++o) {
      out[static_cast<size_t>((at.n * out_channels + o) * conv.places + at.p)] +=
          seen *
          conv.w[static_cast<size_t>((o * in_of_group + c % in_of_group) * conv.kernel + at.e)];
    }
  }
}

Status RunDeformConv(OperatorCall& call) {
  AG_LET(const Deformed conv, ReadDeformed(call));
  const int64_t batch = call.ShapeOf(0)[0], out_channels = call.ShapeOf(1)[0];
  const TensorType type{call.TypeOf(0), WithSpatial(batch, out_channels, conv.window.out)};
  AG_TRY(call.MakeBytes(0, type));  // Checks the size.
  Doubles out(static_cast<size_t>(type.NumElements()));
  for (size_t i = 0; i < out.size() && !conv.bias.empty(); ++i) {
    out[i] = conv.bias[i / static_cast<size_t>(conv.places) % conv.bias.size()];
  }
  std::vector<Tap> taps;
  for (int64_t row = 0; !out.empty() && row < batch * conv.offset_groups; ++row) {
    DeformedElement at{.n = row / conv.offset_groups, .group = row % conv.offset_groups};
    ForPositions(conv.window.out, [&](const Ints& place, int64_t p) {
      ForPositions(conv.window.kernel, [&](const Ints& element, int64_t e) {
        at.p = p;
        at.e = e;
        TapsOfElement(conv, at, place, element, taps);
        AddElement(call, conv, at, taps, out);
      });
    });
  }
  return GiveNarrowed(call, 0, type, out);
}

}  // namespace

std::span<const OperatorRow> SampleOperators() {
  static constexpr OperatorRow kRows[] = {
      {"GridSample", RunGridSample},
      {"AffineGrid", RunAffineGrid, FromOperands({1})},
      {"DeformConv", RunDeformConv},
  };
  return kRows;
}

}  // namespace ag::onnx_operators
