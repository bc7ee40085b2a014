// Operators that only move elements: they copy bytes by the element's size.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "graph/onnx/operators/index_rows.h"
#include "graph/onnx/operators/layout.h"
#include "graph/shapes.h"

namespace ag::onnx_operators {
namespace {

int64_t WidthOf(const OperatorCall& call, size_t i) { return SizeOf(call.TypeOf(i)); }

// Returns the attribute `name`, or operand `i` for an operator that has it as one since opset
// `since`; nothing when it is absent.
StatusOr<std::optional<Ints>> ListOf(OperatorCall& call, std::string_view name, size_t i,
                                     int64_t since) {
  if (call.opset() < since) return call.IntList(name);
  if (!call.Has(i)) return std::optional<Ints>();
  AG_LET(Ints list, call.IntsAt(i));
  return std::optional<Ints>(std::move(list));
}

// Makes result 0 of operand 0's bytes in another shape.
Status GiveReshaped(OperatorCall& call, const Ints& sizes) {
  const TensorType type{call.TypeOf(0), Shape(sizes.begin(), sizes.end())};
  AG_TRY(ag::CheckType(type));
  if (type.NumElements() != call.Type(0).NumElements()) {
    return Err(StatusCode::kInvalidArgument, "{} does not reshape to {}", call.Type(0).ToString(),
               ShapeToString(type.shape));
  }
  AG_LET(char* to, call.MakeBytes(0, type));
  std::ranges::copy(call.In(0).bytes(), to);
  return OkStatus();
}

Status RunIdentity(OperatorCall& call) {
  AG_TRY(call.CheckInputs(1, 1));
  return GiveReshaped(call, Ints(call.ShapeOf(0).begin(), call.ShapeOf(0).end()));
}

Status RunReshape(OperatorCall& call) {
  AG_TRY(call.CheckInputs(2, 2));
  const bool zero_copies = call.Int("allowzero", 0) == 0;
  AG_LET(Ints sizes, call.IntsAt(1));
  int64_t rest = 1, open = -1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0 && zero_copies) {
      if (i >= call.ShapeOf(0).size()) {
        return Err(StatusCode::kInvalidArgument, "size {} of the shape copies from {}", i,
                   call.Type(0).ToString());
      }
      sizes[i] = call.ShapeOf(0)[i];
    }
    if (sizes[i] == -1 && open < 0) {
      open = static_cast<int64_t>(i);
    } else if (sizes[i] < 0 || __builtin_mul_overflow(rest, sizes[i], &rest)) {
      return Err(StatusCode::kInvalidArgument, "size {} of the shape is {}", i, sizes[i]);
    }
  }
  const int64_t all = call.Type(0).NumElements();
  if (open >= 0) sizes[open] = rest == 0 ? 0 : all / rest;
  return GiveReshaped(call, sizes);
}

Status RunSqueeze(OperatorCall& call) {
  AG_TRY(call.CheckInputs(1, 2));
  AG_LET(const std::optional<Ints> given, ListOf(call, "axes", 1, 13));
  const Shape& from = call.ShapeOf(0);
  AG_LET(const Ints axes, ResolveAxes(given.value_or(Ints{}), call.Rank(0)));
  Ints sizes;
  for (size_t i = 0; i < from.size(); ++i) {
    const bool named = std::ranges::count(axes, static_cast<int64_t>(i)) > 0;
    if (named && from[i] != 1) {
      return Err(StatusCode::kInvalidArgument, "axis {} of {} is not 1", i, ShapeToString(from));
    }
    if (given.has_value() ? !named : from[i] != 1) sizes.push_back(from[i]);
  }
  return GiveReshaped(call, sizes);
}

Status RunUnsqueeze(OperatorCall& call) {
  AG_TRY(call.CheckInputs(1, 2));
  AG_LET(const std::optional<Ints> given, ListOf(call, "axes", 1, 13));
  if (!given.has_value()) return Err(StatusCode::kInvalidArgument, "axes are missing");
  const int64_t rank = call.Rank(0) + static_cast<int64_t>(given->size());
  AG_LET(const Ints axes, ResolveAxes(*given, rank));
  Ints sizes(rank, -1);
  for (const int64_t axis : axes) {
    if (sizes[axis] == 1) {
      return Err(StatusCode::kInvalidArgument, "axis {} is given twice", axis);
    }
    sizes[axis] = 1;
  }
  auto next = call.ShapeOf(0).begin();
  for (int64_t& size : sizes) {
    if (size < 0) size = *next++;
  }
  return GiveReshaped(call, sizes);
}

// Makes result `i` of `shape`, read from operand 0 at `offset` by `strides`, in elements.
Status GiveStrided(OperatorCall& call, size_t i, const Shape& shape, const Ints& strides,
                   int64_t offset = 0) {
  AG_LET(char* to, call.MakeBytes(i, {call.TypeOf(0), shape}));
  const int64_t width = WidthOf(call, 0);
  CopyStrided(shape, call.In(0).bytes().data() + offset * width, strides, width, to);
  return OkStatus();
}

Status RunTranspose(OperatorCall& call) {
  AG_TRY(call.CheckInputs(1, 1));
  const Shape& from = call.ShapeOf(0);
  Ints perm(from.size());
  std::iota(perm.rbegin(), perm.rend(), 0);
  perm = call.IntList("perm").value_or(perm);
  Ints axes(from.size());
  std::iota(axes.begin(), axes.end(), 0);
  if (!std::ranges::is_permutation(perm, axes)) {
    return Err(StatusCode::kInvalidArgument, "perm does not permute the axes of {}",
               call.Type(0).ToString());
  }
  const Ints strides = StridesOf(from);
  Shape shape;
  Ints steps;
  for (const int64_t axis : perm) {
    shape.push_back(from[axis]);
    steps.push_back(strides[axis]);
  }
  return GiveStrided(call, 0, shape, steps);
}

Status RunExpand(OperatorCall& call) {
  AG_TRY(call.CheckInputs(2, 2));
  AG_LET(const Ints sizes, call.IntsAt(1));
  AG_LET(const Shape shape, BroadcastShapes(call.ShapeOf(0), sizes));
  AG_TRY(ag::CheckType({call.TypeOf(0), shape}));
  return GiveStrided(call, 0, shape, BroadcastStrides(call.ShapeOf(0), shape));
}

Status RunTile(OperatorCall& call) {
  AG_TRY(call.CheckInputs(2, 2));
  AG_LET(const Ints repeats, call.IntsAt(1));
  const Shape& from = call.ShapeOf(0);
  if (repeats.size() != from.size()) {
    return Err(StatusCode::kInvalidArgument, "{} repeats for {}", repeats.size(),
               call.Type(0).ToString());
  }
  const Ints strides = StridesOf(from);
  Shape shape, split;
  Ints steps;
  for (size_t i = 0; i < from.size(); ++i) {
    int64_t size = 0;
    if (repeats[i] < 0 || __builtin_mul_overflow(from[i], repeats[i], &size)) {
      return Err(StatusCode::kInvalidArgument, "axis {}: {} repeats", i, repeats[i]);
    }
    shape.push_back(size);
    for (const int64_t part : {repeats[i], from[i]}) split.push_back(part);
    for (const int64_t step : {int64_t{0}, strides[i]}) steps.push_back(step);
  }
  AG_LET(char* to, call.MakeBytes(0, {call.TypeOf(0), shape}));
  if (NumElements(shape) == 0) return OkStatus();
  CopyStrided(split, call.In(0).bytes().data(), steps, WidthOf(call, 0), to);
  return OkStatus();
}

Status RunConcat(OperatorCall& call) {
  AG_TRY(call.CheckInputs(std::max<size_t>(call.size(), 1), call.size()));
  if (!call.HasAttribute("axis") && call.opset() >= 4) {
    return Err(StatusCode::kInvalidArgument, "attribute \"axis\" is missing");
  }
  AG_LET(const int64_t axis, call.Axis(1));
  Shape shape = call.ShapeOf(0);
  shape[axis] = 0;
  for (size_t i = 0; i < call.size(); ++i) {
    Shape other = call.ShapeOf(i);
    const int64_t size = axis < call.Rank(i) ? other[axis] : 0;
    if (axis < call.Rank(i)) other[axis] = shape[axis];
    if (call.TypeOf(i) != call.TypeOf(0) || other != shape) {
      return Err(StatusCode::kInvalidArgument, "input {}: {} does not follow {}", i,
                 call.Type(i).ToString(), call.Type(0).ToString());
    }
    shape[axis] += size;
  }
  AG_LET(char* to, call.MakeBytes(0, {call.TypeOf(0), shape}));
  if (NumElements(shape) == 0) return OkStatus();
  const AxisView view = ViewAlong(shape, axis);
  for (int64_t o = 0; o < view.outer; ++o) {
    for (size_t i = 0; i < call.size(); ++i) {
      const std::string_view from = call.In(i).bytes();
      const size_t bytes = from.size() / static_cast<size_t>(view.outer);
      to = std::ranges::copy(from.substr(static_cast<size_t>(o) * bytes, bytes), to).out;
    }
  }
  return OkStatus();
}

// Returns the sizes of the parts of a split along an axis of `size`.
StatusOr<Ints> PartsOf(OperatorCall& call, int64_t size) {
  const auto parts = static_cast<int64_t>(call.outputs());
  AG_LET(std::optional<Ints> sizes, ListOf(call, "split", 1, 13));
  const int64_t count = call.opset() < 18 ? parts : call.Int("num_outputs", parts);
  if (count != parts || parts == 0) {
    return Err(StatusCode::kInvalidArgument, "num_outputs is {}, the node has {} outputs", count,
               parts);
  }
  if (!sizes.has_value()) {
    const int64_t part = size / parts + (size % parts != 0 ? 1 : 0);
    sizes = Ints(parts, part);
    sizes->back() = size - part * (parts - 1);
    if (call.opset() < 18 && size % parts != 0) sizes->back() = -1;
  }
  int64_t rest = size;
  bool fits = sizes->size() == call.outputs();
  for (const int64_t part : *sizes) {
    fits = fits && part >= 0 && part <= rest;
    if (fits) rest -= part;
  }
  if (fits && rest == 0) return *std::move(sizes);
  return Err(StatusCode::kInvalidArgument, "an axis of {} does not split into {} such parts", size,
             parts);
}

Status RunSplit(OperatorCall& call) {
  AG_TRY(call.CheckInputs(1, 2));
  AG_LET(const int64_t axis, call.Axis(0));
  AG_LET(const Ints sizes, PartsOf(call, call.ShapeOf(0)[axis]));
  const Ints strides = StridesOf(call.ShapeOf(0));
  int64_t at = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    Shape shape = call.ShapeOf(0);
    shape[axis] = sizes[i];
    if (call.Wants(i)) AG_TRY(GiveStrided(call, i, shape, strides, at * strides[axis]));
    at += sizes[i];
  }
  return OkStatus();
}

Status RunSlice(OperatorCall& call) {
  const bool as_attributes = call.opset() < 10;
  AG_TRY(as_attributes ? call.CheckInputs(1, 1) : call.CheckInputs(3, 5));
  AG_LET(const std::optional<Ints> starts, ListOf(call, "starts", 1, 10));
  AG_LET(const std::optional<Ints> ends, ListOf(call, "ends", 2, 10));
  if (!starts.has_value() || !ends.has_value()) {
    return Err(StatusCode::kInvalidArgument, "starts or ends are missing");
  }
  Ints axes(starts->size()), steps(starts->size(), 1);
  std::iota(axes.begin(), axes.end(), 0);
  AG_LET(const std::optional<Ints> given, ListOf(call, "axes", 3, 10));
  AG_LET(axes, ResolveAxes(given.value_or(axes), call.Rank(0)));
  if (call.Has(4)) {
    AG_LET(steps, call.IntsAt(4));
  }
  if (ends->size() != starts->size() || axes.size() != starts->size() ||
      steps.size() != starts->size()) {
    return Err(StatusCode::kInvalidArgument, "starts, ends, axes, steps: {}, {}, {}, {} values",
               starts->size(), ends->size(), axes.size(), steps.size());
  }
  Shape shape = call.ShapeOf(0);
  Ints strides = StridesOf(shape);
  int64_t offset = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (steps[i] == 0 || std::count(axes.begin(), axes.begin() + i, axes[i]) > 0) {
      return Err(StatusCode::kInvalidArgument, "axis {} is given twice or has step 0", axes[i]);
    }
    const SliceRange range = ResolveSlice(shape[axes[i]], (*starts)[i], (*ends)[i], steps[i]);
    shape[axes[i]] = range.count;
    // The step of one element is never used, and may be too large to be multiplied.
    if (range.count > 0) offset += range.start * strides[axes[i]];
    strides[axes[i]] = range.count > 1 ? strides[axes[i]] * range.step : 0;
  }
  if (NumElements(shape) == 0) offset = 0;
  return GiveStrided(call, 0, shape, strides, offset);
}

Status RunWhere(OperatorCall& call) {
  AG_TRY(call.CheckInputs(3, 3));
  AG_TRY(call.CheckType(0, DType::kBool));
  AG_TRY(call.CheckType(2, call.TypeOf(1)));
  AG_LET(const Shape shape, BroadcastOf(call));
  AG_LET(char* to, call.MakeBytes(0, {call.TypeOf(1), shape}));
  const int64_t width = WidthOf(call, 1);
  const char *condition = call.In(0).bytes().data(), *yes = call.In(1).bytes().data(),
             *no = call.In(2).bytes().data();
  Walk<3>(shape,
          {BroadcastStrides(call.ShapeOf(0), shape), BroadcastStrides(call.ShapeOf(1), shape),
           BroadcastStrides(call.ShapeOf(2), shape)},
          [&](const std::array<int64_t, 3>& at) {
            const char* from = condition[at[0]] != 0 ? yes + at[1] * width : no + at[2] * width;
            std::memcpy(to, from, static_cast<size_t>(width));
            to += width;
          });
  return OkStatus();
}

enum class PadMode { kConstant, kEdge, kReflect, kWrap };

StatusOr<PadMode> PadModeOf(OperatorCall& call) {
  const std::string mode = call.String("mode", "constant");
  if (mode == "constant") return PadMode::kConstant;
  if (mode == "edge") return PadMode::kEdge;
  if (mode == "reflect") return PadMode::kReflect;
  if (mode == "wrap") return PadMode::kWrap;
  return Err(StatusCode::kInvalidArgument, "no padding mode is named {}", Quoted(mode));
}

// Returns the position that `at` of a padded axis copies from; -1: it takes the fill value.
int64_t SourceOf(int64_t at, int64_t size, PadMode mode) {
  if (at >= 0 && at < size) return at;
  if (mode == PadMode::kConstant) return -1;
  if (mode == PadMode::kEdge) return at < 0 ? 0 : size - 1;
  if (mode == PadMode::kReflect) {
    if (size == 1) return 0;
    const int64_t period = 2 * (size - 1), folded = ((at % period) + period) % period;
    return folded < size ? folded : period - folded;
  }
  return ((at % size) + size) % size;
}

// Makes result 0: operand 0 with `begins` and `ends` positions added to each axis, or taken away
// where they are negative.
Status GivePadded(OperatorCall& call, const Ints& begins, const Ints& ends, PadMode mode,
                  std::string_view fill) {
  const Shape& from = call.ShapeOf(0);
  Shape shape;
  for (size_t i = 0; i < from.size(); ++i) {
    const auto limited = [](int64_t pad) { return pad >= -kElementsMax && pad <= kElementsMax; };
    const bool fits = limited(begins[i]) && limited(ends[i]);
    const int64_t size = fits ? from[i] + begins[i] + ends[i] : -1;
    if (size < 0) {
      return Err(StatusCode::kInvalidArgument, "axis {} of {}: pads {} and {}", i,
                 ShapeToString(from), begins[i], ends[i]);
    }
    if (from[i] == 0 && size > 0 && mode != PadMode::kConstant) {
      return Err(StatusCode::kInvalidArgument, "axis {} of {} has nothing to copy", i,
                 ShapeToString(from));
    }
    shape.push_back(size);
  }
  AG_LET(char* to, call.MakeBytes(0, {call.TypeOf(0), shape}));
  const int64_t count = NumElements(shape), width = WidthOf(call, 0);
  const Ints strides = StridesOf(from);
  const char* data = call.In(0).bytes().data();
  Ints at(from.size());
  for (int64_t done = 0; done < count; ++done, to += width) {
    int64_t offset = 0;
    for (size_t i = 0; i < from.size() && offset >= 0; ++i) {
      const int64_t source = SourceOf(at[i] - begins[i], from[i], mode);
      offset = source < 0 ? -1 : offset + source * strides[i];
    }
    std::memcpy(to, offset < 0 ? fill.data() : data + offset * width, static_cast<size_t>(width));
    for (size_t i = from.size(); i-- > 0 && ++at[i] == shape[i];) at[i] = 0;
  }
  return OkStatus();
}

// Before opset 11 the fill value was an attribute.
StatusOr<Tensor> FillOf(OperatorCall& call) {
  Tensor fill = Tensor::Zeros({call.TypeOf(0), {}});
  if (call.opset() < 11) {
    const double value = call.Float("value", 0);
    if (value != 0) fill.Put(0, value);
  } else if (call.Has(2)) {
    AG_TRY(call.CheckType(2, call.TypeOf(0)));
    if (call.Type(2).NumElements() != 1) {
      return Err(StatusCode::kInvalidArgument, "input 2: expected one element, got {}",
                 call.Type(2).ToString());
    }
    fill = call.In(2);
  }
  return fill;
}

Status RunPad(OperatorCall& call) {
  AG_TRY(call.opset() < 11 ? call.CheckInputs(1, 1) : call.CheckInputs(2, 4));
  AG_LET(const PadMode mode, PadModeOf(call));
  AG_LET(const std::optional<Ints> pads, ListOf(call, "pads", 1, 11));
  AG_LET(const Tensor fill, FillOf(call));
  const int64_t rank = call.Rank(0);
  Ints axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  if (call.Has(3)) {
    AG_LET(axes, call.IntsAt(3));
    AG_LET(axes, ResolveAxes(axes, rank));
  }
  if (!pads.has_value() || pads->size() != 2 * axes.size()) {
    return Err(StatusCode::kInvalidArgument, "{} pads for {} axes",
               pads.has_value() ? pads->size() : 0, axes.size());
  }
  Ints begins(rank), ends(rank);
  for (size_t i = 0; i < axes.size(); ++i) {
    begins[axes[i]] = (*pads)[i];
    ends[axes[i]] = (*pads)[axes.size() + i];
  }
  return GivePadded(call, begins, ends, mode, fill.bytes());
}

// Crops and pads each named axis around its centre; what does not divide goes to the end.
Status RunCenterCropPad(OperatorCall& call) {
  AG_TRY(call.CheckInputs(2, 2));
  const int64_t rank = call.Rank(0);
  Ints axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  AG_LET(axes, ResolveAxes(call.IntList("axes").value_or(axes), rank));
  AG_LET(const Ints sizes, call.IntsAt(1));
  if (sizes.size() != axes.size()) {
    return Err(StatusCode::kInvalidArgument, "{} sizes for {} axes", sizes.size(), axes.size());
  }
  Ints begins(rank), ends(rank);
  for (size_t i = 0; i < axes.size(); ++i) {
    if (sizes[i] < 0) return Err(StatusCode::kInvalidArgument, "a size is {}", sizes[i]);
    const int64_t more = sizes[i] - call.ShapeOf(0)[axes[i]];
    begins[axes[i]] = more / 2;
    ends[axes[i]] = more - more / 2;
  }
  const Tensor zero = Tensor::Zeros({call.TypeOf(0), {}});
  return GivePadded(call, begins, ends, PadMode::kConstant, zero.bytes());
}

}  // namespace

std::span<const OperatorRow> MoveOperators() {
  static constexpr OperatorRow kRows[] = {
      {"Identity", RunIdentity},
      {"Reshape", RunReshape, FromOperands({1})},
      {"Squeeze", RunSqueeze, FromOperands({1})},
      {"Unsqueeze", RunUnsqueeze, FromOperands({1})},
      {"Transpose", RunTranspose},
      {"Expand", RunExpand, FromOperands({1})},
      {"Tile", RunTile, FromOperands({1})},
      {"Concat", RunConcat},
      {"Split", RunSplit, FromOperands({1})},
      {"Slice", RunSlice, FromOperands({1, 2, 3, 4})},
      {"Pad", RunPad, FromOperands({1, 3})},
      {"CenterCropPad", RunCenterCropPad, FromOperands({1})},
      {"Where", RunWhere},
  };
  return kRows;
}

}  // namespace ag::onnx_operators
