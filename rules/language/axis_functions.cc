// Functions of rules about axes: permutations, the axes that a reduction leaves, cuts and pads,
// broadcasts.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

#include "graph/shapes.h"
#include "rules/language/arguments.h"
#include "rules/language/guards.h"

namespace ag {
namespace {

// Returns one axis, or a list of axes.
std::optional<Ints> AxesOf(Arguments arguments, size_t i) {
  if (const auto* axis = Get<int64_t>(arguments, i)) return Ints{*axis};
  if (const Ints* list = Get<Ints>(arguments, i)) return *list;
  return std::nullopt;
}

bool Holds(const Ints& list, int64_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// ---- Permutations.

bool IsPermutation(const Ints& p) {
  Ints sorted = p;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

Result Inverse(const TensorFacts&, const Ints& p) {
  if (!IsPermutation(p)) return std::nullopt;
  Ints out(p.size());
  for (size_t i = 0; i < p.size(); ++i) out[p[i]] = static_cast<int64_t>(i);
  return out;
}

// To transpose by p and then drop `axes` equals to drop their operand axes first and then transpose
// by the result.
Result PermWithout(const TensorFacts&, const Ints& p, const Ints& axes) {
  if (!IsPermutation(p)) return std::nullopt;
  Ints kept;
  for (size_t i = 0; i < p.size(); ++i) {
    if (!Holds(axes, static_cast<int64_t>(i))) kept.push_back(p[i]);
  }
  Ints out;
  for (const int64_t axis : kept) {
    out.push_back(std::count_if(kept.begin(), kept.end(), [&](int64_t k) { return k < axis; }));
  }
  return out;
}

// Whether only axes of size 1 change places, so that the elements keep their order.
Result MovesOnes(const TensorFacts&, const Shape& shape, const Ints& p) {
  if (p.size() != shape.size()) return std::nullopt;
  Ints wide;
  for (const int64_t axis : p) {
    if (shape[axis] != 1) wide.push_back(axis);
  }
  return Truth(std::is_sorted(wide.begin(), wide.end()));
}

// ---- Lists.

Result First(const TensorFacts&, Arguments a) { return a.empty() ? Result() : a[0]; }

Result Contains(const TensorFacts&, Arguments a) {
  const Ints* list = Get<Ints>(a, 0);
  const auto values = AxesOf(a, 1);
  if (list == nullptr || !values) return std::nullopt;
  return Truth(std::any_of(values->begin(), values->end(),
                           [&](int64_t value) { return Holds(*list, value); }));
}

Result Below(const TensorFacts&, const Ints& list, int64_t value) {
  return std::count_if(list.begin(), list.end(), [&](int64_t v) { return v < value; });
}

// Whether the reciprocal of the float is exact in every element type; f16 reaches to 2^-14.
Result PowerOfTwo(const TensorFacts&, double value) {
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(value), &exponent);
  return Truth(fraction == 0.5 && std::abs(exponent - 1) <= 14);
}

// ---- Broadcasts.

Result Broadcast(const TensorFacts& facts, Arguments a) {
  Shape out;
  for (size_t i = 0; i < a.size(); ++i) {
    const auto shape = ShapeOf(facts, a, i);
    if (!shape) return std::nullopt;
    StatusOr<Shape> both = BroadcastShapes(out, *shape);
    if (!both.ok()) return std::nullopt;
    out = *std::move(both);
  }
  return ToInts(out);
}

// Whether c, broadcast against y, is constant along the axes n of y: its own axes there have size 1
// or are missing.
Result ConstantAlong(const TensorFacts& facts, Arguments a) {
  const auto c = ShapeOf(facts, a, 0);
  const auto y = ShapeOf(facts, a, 1);
  const auto axes = AxesOf(a, 2);
  if (!c || !y || !axes) return std::nullopt;
  const int64_t shift = static_cast<int64_t>(y->size()) - static_cast<int64_t>(c->size());
  if (shift < 0) return Truth(false);
  for (const int64_t axis : *axes) {
    const auto at = AxisIn(*y, axis);
    if (!at.has_value()) return std::nullopt;
    if (*at >= shift && (*c)[*at - shift] != 1) return Truth(false);
  }
  return Truth(true);
}

// ---- Reductions.

Result SizeAlong(const TensorFacts& facts, Arguments a) {
  const auto shape = ShapeOf(facts, a, 0);
  const auto axes = AxesOf(a, 1);
  if (!shape || !axes) return std::nullopt;
  int64_t size = 1;
  for (const int64_t axis : *axes) {
    if (axis < 0 || axis >= static_cast<int64_t>(shape->size())) return std::nullopt;
    size *= (*shape)[axis];
  }
  return size;
}

// Returns the axes that go when first those in `a` are reduced, kept as size 1 (k = 1) or not, and
// then those in `b` of the result.
Result JoinedAxes(const TensorFacts&, const Ints& first, int64_t keep, const Ints& second) {
  std::set<int64_t> axes(first.begin(), first.end());
  for (int64_t axis : second) {
    if (keep == 0) {
      for (const int64_t gone : first) axis += gone <= axis ? 1 : 0;  // Ascending.
    }
    axes.insert(axis);
  }
  return Ints(axes.begin(), axes.end());
}

// ---- Cuts.

// Returns the range of a slice on each axis, from starts and ends that may count from the end.
std::optional<std::vector<SliceRange>> Ranges(const Shape& shape, Arguments a) {
  const Ints *axes = Get<Ints>(a, 0), *starts = Get<Ints>(a, 1), *ends = Get<Ints>(a, 2),
             *steps = Get<Ints>(a, 3);
  if (axes == nullptr || starts == nullptr || ends == nullptr || steps == nullptr) {
    return std::nullopt;
  }
  std::vector<SliceRange> ranges;
  for (const int64_t size : shape) ranges.push_back({.start = 0, .step = 1, .count = size});
  for (size_t i = 0; i < axes->size(); ++i) {
    const int64_t axis = (*axes)[i];
    if (axis < 0 || axis >= static_cast<int64_t>(shape.size())) return std::nullopt;
    ranges[axis] = ResolveSlice(shape[axis], (*starts)[i], (*ends)[i], (*steps)[i]);
  }
  return ranges;
}

// Returns two slices, one after the other, as one: (x, axes, starts, ends, steps of the first, then
// of the second).
std::optional<std::vector<SliceRange>> JoinedRanges(const TensorFacts& facts, Arguments a) {
  const auto shape = ShapeOf(facts, a, 0);
  if (!shape || a.size() != 9) return std::nullopt;
  const auto first = Ranges(*shape, a.subspan(1, 4));
  if (!first) return std::nullopt;
  Shape left;
  for (const SliceRange& range : *first) left.push_back(range.count);
  auto both = Ranges(left, a.subspan(5, 4));
  if (!both) return std::nullopt;
  for (size_t i = 0; i < both->size(); ++i) {
    SliceRange& range = (*both)[i];
    if (range.count == 0) return std::nullopt;
    range.start = (*first)[i].start + range.start * (*first)[i].step;
    range.step = range.count == 1 ? 1 : range.step * (*first)[i].step;
  }
  return both;
}

// Returns the axes that are cut, so that equal slices have equal attributes.
Ints CutAxes(const Shape& shape, const std::vector<SliceRange>& ranges) {
  Ints axes;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const bool whole = ranges[i].count == shape[i] && ranges[i].step == 1;
    if (!whole) axes.push_back(static_cast<int64_t>(i));
  }
  return axes;
}

template <class Of>
Result OfJoined(const TensorFacts& facts, Arguments a, Of of) {
  const auto ranges = JoinedRanges(facts, a);
  if (!ranges) return std::nullopt;
  const Shape shape = *ShapeOf(facts, a, 0);
  Ints out;
  for (const int64_t axis : CutAxes(shape, *ranges)) {
    out.push_back(of(axis, (*ranges)[axis], shape[axis]));
  }
  return out;
}

Result SliceAxes(const TensorFacts& facts, Arguments a) {
  return OfJoined(facts, a, [](int64_t axis, const SliceRange&, int64_t) { return axis; });
}
Result SliceStarts(const TensorFacts& facts, Arguments a) {
  return OfJoined(facts, a, [](int64_t, const SliceRange& r, int64_t) { return r.start; });
}
Result SliceSteps(const TensorFacts& facts, Arguments a) {
  return OfJoined(facts, a, [](int64_t, const SliceRange& r, int64_t) { return r.step; });
}
// Returns one position after the last; before the first element it is written from the end, as in
// ONNX.
Result SliceEnds(const TensorFacts& facts, Arguments a) {
  return OfJoined(facts, a, [](int64_t, const SliceRange& r, int64_t size) {
    const int64_t last = r.start + (r.count - 1) * r.step;
    const int64_t end = r.step > 0 ? last + 1 : last - 1;
    return end < 0 ? -size - 1 : end;
  });
}

// Returns the pads, all 0 or less, that cut y as the slice does; nothing when it has steps.
Result Crop(const TensorFacts& facts, Arguments a) {
  const auto shape = ShapeOf(facts, a, 0);
  if (!shape || a.size() != 5) return std::nullopt;
  const auto ranges = Ranges(*shape, a.subspan(1, 4));
  if (!ranges) return std::nullopt;
  Ints pads(2 * shape->size(), 0);
  for (size_t i = 0; i < shape->size(); ++i) {
    const SliceRange& range = (*ranges)[i];
    if (range.step != 1 || range.count == 0) return std::nullopt;
    pads[i] = -range.start;
    pads[i + shape->size()] = range.start + range.count - (*shape)[i];
  }
  return pads;
}

#define SLICES "(x, a, s, e, t, b, u, f, v)"
constexpr RuleFunction kAxisFunctions[] = {
    {"below", "below(list, n)", "how many elements are less than n", 2, 2, Asks::kTypes,
     Typed<Below>},
    {"broadcast", "broadcast(x, ...)", "the shape that the tensors or shapes broadcast to", 1, -1,
     Asks::kTypes, Broadcast},
    {"constant_along", "constant_along(c, y, n)",
     "c broadcast against y is the same all along axis n of y, or all axes of a list", 3, 3,
     Asks::kTypes, ConstantAlong},
    {"contains", "contains(list, n)", "n, or some element of the list n, is in the list", 2, 2,
     Asks::kTypes, Contains},
    {"crop", "crop(y, a, s, e, t)",
     "the pads (none above 0) that take of y what a slice without steps takes", 5, 5, Asks::kTypes,
     Crop},
    {"first", "first(e...)", "the value for the first i", 1, -1, Asks::kTypes, First},
    {"inverse", "inverse(p)", "the permutation that undoes p", 1, 1, Asks::kTypes, Typed<Inverse>},
    {"joined_axes", "joined_axes(a, k, b)",
     "the axes that go by reducing axes a with keepdims k, then axes b of the result", 3, 3,
     Asks::kTypes, Typed<JoinedAxes>},
    {"moves_ones", "moves_ones(x, p)", "transposing x by p moves axes of size 1 only", 2, 2,
     Asks::kTypes, Typed<MovesOnes>},
    {"perm_without", "perm_without(p, a)", "the permutation p of the axes but those at a", 2, 2,
     Asks::kTypes, Typed<PermWithout>},
    {"power_of_two", "power_of_two(c)", "the float is a power of two, from 2^-14 to 2^14", 1, 1,
     Asks::kTypes, Typed<PowerOfTwo>},
    {"size_along", "size_along(x, a)", "the product of the sizes of axes a", 2, 2, Asks::kTypes,
     SizeAlong},
    {"slice_axes", "slice_axes" SLICES,
     "the axes that slicing x by a, s, e, t, then by b, u, f, v, cuts", 9, 9, Asks::kTypes,
     SliceAxes},
    {"slice_ends", "slice_ends" SLICES, "where the two slices as one end", 9, 9, Asks::kTypes,
     SliceEnds},
    {"slice_starts", "slice_starts" SLICES, "where the two slices as one start", 9, 9, Asks::kTypes,
     SliceStarts},
    {"slice_steps", "slice_steps" SLICES, "the steps of the two slices as one", 9, 9, Asks::kTypes,
     SliceSteps},
};
#undef SLICES

}  // namespace

std::span<const RuleFunction> AxisFunctions() { return kAxisFunctions; }

}  // namespace ag
