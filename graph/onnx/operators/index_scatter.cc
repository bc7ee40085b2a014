// Scatter, ScatterElements, ScatterND, TensorScatter.
#include <algorithm>

#include "graph/onnx/operators/arithmetic.h"
#include "graph/onnx/operators/index_rows.h"
#include "graph/onnx/operators/layout.h"

namespace ag::onnx_operators {
namespace {

enum class Reduction { kNone, kAdd, kMul, kMin, kMax };

StatusOr<Reduction> ReductionOf(OperatorCall& call) {
  const std::string name = call.String("reduction", "none");
  if (name == "none") return Reduction::kNone;
  if (name == "add") return Reduction::kAdd;
  if (name == "mul") return Reduction::kMul;
  if (name == "min") return Reduction::kMin;
  if (name == "max") return Reduction::kMax;
  return Err(StatusCode::kInvalidArgument, "no reduction is named {}", Quoted(name));
}

template <class T>
void Combine(Reduction reduction, const T& update, T& into) {
  using W = Wide<T>;
  const W a = static_cast<W>(into), b = static_cast<W>(update);
  switch (reduction) {
    case Reduction::kNone:
      into = update;
      return;
    case Reduction::kAdd:
      into = static_cast<T>(Plus<W>(a, b));
      return;
    case Reduction::kMul:
      into = static_cast<T>(Times<W>(a, b));
      return;
    case Reduction::kMin:
      into = static_cast<T>(Smaller<W>(a, b));
      return;
    case Reduction::kMax:
      into = static_cast<T>(Larger<W>(a, b));
      return;
  }
}

// Makes result 0 as a copy of operand 0.
Status CopyData(OperatorCall& call) {
  AG_TRY(call.CheckInputs(3, 3));
  AG_TRY(call.CheckType(2, call.TypeOf(0)));
  AG_LET(char* to, call.MakeBytes(0, call.Type(0)));
  std::ranges::copy(call.In(0).bytes(), to);
  return OkStatus();
}

Status RunScatterElements(OperatorCall& call) {
  AG_TRY(CopyData(call));
  AG_LET(const int64_t axis, call.Axis(0));
  AG_LET(const Reduction reduction, ReductionOf(call));
  Ints converted;
  if (call.TypeOf(1) != DType::kInt64) {
    AG_LET(converted, call.IntsAt(1));
  }
  const std::span<const int64_t> indices =
      converted.empty() ? call.In(1).As<int64_t>() : std::span<const int64_t>(converted);
  const Shape &into = call.ShapeOf(0), &shape = call.ShapeOf(1);
  bool fits = shape.size() == into.size() && shape == call.ShapeOf(2);
  for (size_t i = 0; fits && i < shape.size(); ++i) {
    fits = shape[i] <= into[i] || static_cast<int64_t>(i) == axis;
  }
  if (!fits) {
    return Err(StatusCode::kInvalidArgument, "indices {}, updates {} do not fit {}",
               ShapeToString(shape), ShapeToString(call.ShapeOf(2)), ShapeToString(into));
  }
  Ints strides = StridesOf(into);
  const int64_t step = strides[axis];
  strides[axis] = 0;
  return ForAny(call.TypeOf(0), [&]<class T>() -> Status {
    T* to = call.results()[0].Mutable<T>().data();
    const T* update = call.Values<T>(2);
    const int64_t* index = indices.data();
    const int64_t size = into[axis];
    for (const int64_t at : indices) {
      if (at < -size || at >= size) return ResolveIndex(at, size).status();
    }
    Walk<1>(shape, {strides}, [&](const std::array<int64_t, 1>& offsets) {
      const int64_t at = *index < 0 ? *index + size : *index;
      Combine<T>(reduction, *update++, to[offsets[0] + at * step]);
      ++index;
    });
    return OkStatus();
  });
}

Status RunScatterNd(OperatorCall& call) {
  AG_TRY(CopyData(call));
  AG_LET(const Reduction reduction, ReductionOf(call));
  AG_LET(const Ints indices, call.IntsAt(1));
  const Shape &into = call.ShapeOf(0), &list = call.ShapeOf(1);
  if (list.empty() || list.back() < 0 || list.back() > call.Rank(0)) {
    return Err(StatusCode::kInvalidArgument, "indices {} do not fit {}", ShapeToString(list),
               ShapeToString(into));
  }
  const int64_t depth = list.back();
  Shape expected(list.begin(), list.end() - 1);
  expected.insert(expected.end(), into.begin() + depth, into.end());
  if (call.ShapeOf(2) != expected) {
    return Err(StatusCode::kInvalidArgument, "input 2: expected {}, got {}",
               ShapeToString(expected), ShapeToString(call.ShapeOf(2)));
  }
  if (NumElements(expected) == 0) return OkStatus();
  const int64_t inner = ElementsOf(into, depth, call.Rank(0));
  const int64_t tuples = NumElements(expected) / inner;
  return ForAny(call.TypeOf(0), [&]<class T>() -> Status {
    T* to = call.results()[0].Mutable<T>().data();
    const T* update = call.Values<T>(2);
    for (int64_t i = 0; i < tuples; ++i) {
      int64_t at = 0;
      for (int64_t d = 0; d < depth; ++d) {
        AG_LET(const int64_t index, ResolveIndex(indices[i * depth + d], into[d]));
        at = at * into[d] + index;
      }
      for (int64_t n = 0; n < inner; ++n) Combine<T>(reduction, *update++, to[at * inner + n]);
    }
    return OkStatus();
  });
}

// Operands: a cache [B,...,M,...], rows for it [B,...,S,...], the place of the first row for each
// element of the batch.
Status RunTensorScatter(OperatorCall& call) {
  AG_TRY(call.CheckInputs(2, 3));
  AG_LET(const int64_t axis, call.Axis(-2));
  const std::string mode = call.String("mode", "linear");
  const Shape &cache = call.ShapeOf(0), &update = call.ShapeOf(1);
  Shape expected = cache;
  if (update.size() == cache.size()) expected[axis] = update[axis];
  if (axis == 0 || update != expected || update[axis] > cache[axis] ||
      call.TypeOf(0) != call.TypeOf(1) || (mode != "linear" && mode != "circular")) {
    return Err(StatusCode::kInvalidArgument, "rows {} do not go into {} along axis {} ({})",
               call.Type(1).ToString(), call.Type(0).ToString(), axis, Quoted(mode));
  }
  Ints first(static_cast<size_t>(cache[0]), 0);
  if (call.Has(2)) {
    AG_LET(first, call.IntsAt(2));
  }
  if (static_cast<int64_t>(first.size()) != cache[0]) {
    return Err(StatusCode::kInvalidArgument, "{} places for a batch of {}", first.size(), cache[0]);
  }
  const AxisView to = ViewAlong(cache, axis), from = ViewAlong(update, axis);
  const auto row_bytes = static_cast<size_t>(to.inner * SizeOf(call.TypeOf(0)));
  AG_TRY(call.MakeBytes(0, call.Type(0)));
  char* out = call.results()[0].Mutable<char>().data();
  std::ranges::copy(call.In(0).bytes(), out);
  const char* rows = call.In(1).bytes().data();
  for (int64_t o = 0; o < to.outer && from.size > 0; ++o) {
    const int64_t begin = first[o / (to.outer / cache[0])];
    const bool fits = begin >= 0 && (mode == "circular" || begin <= to.size - from.size);
    if (!fits) {
      return Err(StatusCode::kOutOfRange, "{} rows from {} on, the cache has {}", from.size, begin,
                 to.size);
    }
    for (int64_t s = 0; s < from.size; ++s) {
      const int64_t place = (begin % to.size + s) % to.size;
      std::copy_n(rows + (o * from.size + s) * row_bytes, row_bytes,
                  out + (o * to.size + place) * row_bytes);
    }
  }
  return OkStatus();
}

}  // namespace

std::span<const OperatorRow> ScatterOperators() {
  static constexpr OperatorRow kRows[] = {
      {"Scatter", RunScatterElements},
      {"ScatterElements", RunScatterElements},
      {"ScatterND", RunScatterNd},
      {"TensorScatter", RunTensorScatter},
  };
  return kRows;
}

}  // namespace ag::onnx_operators
