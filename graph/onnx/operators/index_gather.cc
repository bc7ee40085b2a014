// Operators that choose elements by index or by condition: they copy bytes by the element's size.
#include <algorithm>
#include <cstring>

#include "graph/onnx/operators/index_rows.h"
#include "graph/onnx/operators/layout.h"

namespace ag::onnx_operators {
namespace {

Status RunGather(OperatorCall& call) {
  AG_TRY(call.CheckInputs(2, 2));
  AG_LET(const int64_t axis, call.Axis(0));
  AG_LET(const Ints indices, call.IntsAt(1));
  const AxisView view = ViewAlong(call.ShapeOf(0), axis);
  Shape shape = call.ShapeOf(0);
  shape.erase(shape.begin() + axis);
  shape.insert(shape.begin() + axis, call.ShapeOf(1).begin(), call.ShapeOf(1).end());
  AG_LET(char* to, call.MakeBytes(0, {call.TypeOf(0), shape}));
  if (NumElements(shape) == 0) return OkStatus();
  const auto bytes = static_cast<size_t>(view.inner * SizeOf(call.TypeOf(0)));
  const char* from = call.In(0).bytes().data();
  for (int64_t o = 0; o < view.outer; ++o) {
    for (const int64_t index : indices) {
      AG_LET(const int64_t at, ResolveIndex(index, view.size));
      std::memcpy(to, from + static_cast<size_t>(o * view.size + at) * bytes, bytes);
      to += bytes;
    }
  }
  return OkStatus();
}

Status RunGatherElements(OperatorCall& call) {
  AG_TRY(call.CheckInputs(2, 2));
  AG_LET(const int64_t axis, call.Axis(0));
  AG_LET(const Ints indices, call.IntsAt(1));
  const Shape &from = call.ShapeOf(0), &shape = call.ShapeOf(1);
  AG_TRY(call.CheckRank(1, call.Rank(0)));
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] <= from[i] || static_cast<int64_t>(i) == axis) continue;
    return Err(StatusCode::kInvalidArgument, "indices {} do not fit {}", ShapeToString(shape),
               ShapeToString(from));
  }
  AG_LET(char* to, call.MakeBytes(0, {call.TypeOf(0), shape}));
  Ints strides = StridesOf(from);
  const int64_t step = strides[axis], width = SizeOf(call.TypeOf(0));
  strides[axis] = 0;
  const char* data = call.In(0).bytes().data();
  const int64_t size = from[axis];
  for (const int64_t at : indices) {
    if (at < -size || at >= size) return ResolveIndex(at, size).status();
  }
  const int64_t* index = indices.data();
  Walk<1>(shape, {strides}, [&](const std::array<int64_t, 1>& offsets) {
    const int64_t at = *index < 0 ? *index + size : *index;
    ++index;
    const char* element = data + (offsets[0] + at * step) * width;
    if (width == 4) {  // The most frequent size, without a call.
      std::memcpy(to, element, 4);
    } else {
      std::memcpy(to, element, static_cast<size_t>(width));
    }
    to += width;
  });
  return OkStatus();
}

Status RunGatherNd(OperatorCall& call) {
  AG_TRY(call.CheckInputs(2, 2));
  AG_LET(const Ints indices, call.IntsAt(1));
  const int64_t batch_dims = call.opset() < 12 ? 0 : call.Int("batch_dims", 0);
  const Shape &from = call.ShapeOf(0), &list = call.ShapeOf(1);
  if (batch_dims < 0 || batch_dims >= std::min(call.Rank(0), call.Rank(1)) ||
      !std::equal(from.begin(), from.begin() + batch_dims, list.begin()) || list.back() < 0 ||
      list.back() > call.Rank(0) - batch_dims) {
    return Err(StatusCode::kInvalidArgument, "indices {} do not fit {}", ShapeToString(list),
               ShapeToString(from));
  }
  const int64_t depth = list.back(), last = batch_dims + depth;
  Shape shape(list.begin(), list.end() - 1);
  shape.insert(shape.end(), from.begin() + last, from.end());
  AG_LET(char* to, call.MakeBytes(0, {call.TypeOf(0), shape}));
  if (NumElements(shape) == 0) return OkStatus();
  const int64_t inner = ElementsOf(from, last, call.Rank(0));
  const auto bytes = static_cast<size_t>(inner * SizeOf(call.TypeOf(0)));
  const int64_t tuples = ElementsOf(list, 0, call.Rank(1) - 1);
  const int64_t tuples_a_batch = tuples / ElementsOf(list, 0, batch_dims);
  for (int64_t i = 0; i < tuples; ++i) {
    int64_t at = i / tuples_a_batch;
    for (int64_t d = 0; d < depth; ++d) {
      const int64_t size = from[batch_dims + d];
      AG_LET(const int64_t index, ResolveIndex(indices[i * depth + d], size));
      at = at * size + index;
    }
    std::memcpy(to, call.In(0).bytes().data() + static_cast<size_t>(at) * bytes, bytes);
    to += bytes;
  }
  return OkStatus();
}

// Copies the slices whose condition holds; a short condition leaves out the rest.
Status RunCompress(OperatorCall& call) {
  AG_TRY(call.CheckInputs(2, 2));
  AG_TRY(call.CheckType(1, DType::kBool));
  AG_TRY(call.CheckRank(1, 1));
  Shape shape = {call.Type(0).NumElements()};
  int64_t axis = 0;
  if (call.HasAttribute("axis")) {
    AG_LET(axis, call.Axis(0));
    shape = call.ShapeOf(0);
  }
  const AxisView view = ViewAlong(shape, axis);
  const std::string_view condition = call.In(1).bytes();
  Ints chosen;
  for (size_t i = 0; i < condition.size(); ++i) {
    if (condition[i] != 0) chosen.push_back(static_cast<int64_t>(i));
  }
  if (!chosen.empty()) AG_TRY(ResolveIndex(chosen.back(), view.size));
  shape[axis] = static_cast<int64_t>(chosen.size());
  AG_LET(char* to, call.MakeBytes(0, {call.TypeOf(0), shape}));
  if (NumElements(shape) == 0) return OkStatus();
  const auto bytes = static_cast<size_t>(view.inner * SizeOf(call.TypeOf(0)));
  for (int64_t o = 0; o < view.outer; ++o) {
    for (const int64_t i : chosen) {
      std::memcpy(to, call.In(0).bytes().data() + static_cast<size_t>(o * view.size + i) * bytes,
                  bytes);
      to += bytes;
    }
  }
  return OkStatus();
}

// A scalar counts as a vector, as in ONNX Runtime.
Status RunNonZero(OperatorCall& call) {
  AG_TRY(call.CheckInputs(1, 1));
  const Shape shape = call.Rank(0) == 0 ? Shape{1} : call.ShapeOf(0);
  const int64_t rank = static_cast<int64_t>(shape.size()), all = NumElements(shape);
  Ints found;
  AG_TRY(ForAny(call.TypeOf(0), [&]<class T>() -> Status {
    const T* values = call.Values<T>(0);
    for (int64_t i = 0; i < all; ++i) {
      if (static_cast<Wide<T>>(values[i]) != 0) found.push_back(i);
    }
    return OkStatus();
  }));
  const auto count = static_cast<int64_t>(found.size());
  AG_LET(int64_t * to, call.Make<int64_t>(0, {rank, count}));
  const Ints strides = StridesOf(shape);
  for (int64_t axis = 0; axis < rank; ++axis) {
    for (int64_t i = 0; i < count; ++i) {
      to[axis * count + i] = found[i] / strides[axis] % shape[axis];
    }
  }
  return OkStatus();
}

// Reverses the first steps of each batch item.
Status RunReverseSequence(OperatorCall& call) {
  AG_TRY(call.CheckInputs(2, 2));
  const int64_t time_axis = call.Int("time_axis", 0), batch_axis = call.Int("batch_axis", 1);
  AG_LET(const Ints lengths, call.IntsAt(1));
  const Shape& shape = call.ShapeOf(0);
  if (std::min(time_axis, batch_axis) != 0 || std::max(time_axis, batch_axis) != 1 ||
      shape.size() < 2 || call.ShapeOf(1) != Shape{shape[batch_axis]}) {
    return Err(StatusCode::kInvalidArgument, "axes {} and {} of {} with lengths {}", time_axis,
               batch_axis, ShapeToString(shape), ShapeToString(call.ShapeOf(1)));
  }
  for (const int64_t length : lengths) {
    if (length >= 0 && length <= shape[time_axis]) continue;
    return Err(StatusCode::kOutOfRange, "a length is {}, there are {} steps", length,
               shape[time_axis]);
  }
  AG_LET(char* to, call.MakeBytes(0, call.Type(0)));
  if (NumElements(shape) == 0) return OkStatus();
  const auto bytes =
      static_cast<size_t>(ElementsOf(shape, 2, call.Rank(0)) * SizeOf(call.TypeOf(0)));
  const Ints steps = {shape[1], 1};
  for (int64_t b = 0; b < shape[batch_axis]; ++b) {
    for (int64_t t = 0; t < shape[time_axis]; ++t) {
      const int64_t source = t < lengths[b] ? lengths[b] - 1 - t : t;
      const int64_t at = b * steps[batch_axis] + t * steps[time_axis];
      const int64_t from = b * steps[batch_axis] + source * steps[time_axis];
      std::memcpy(to + static_cast<size_t>(at) * bytes,
                  call.In(0).bytes().data() + static_cast<size_t>(from) * bytes, bytes);
    }
  }
  return OkStatus();
}

}  // namespace

std::span<const OperatorRow> GatherOperators() {
  static constexpr OperatorRow kRows[] = {
      {"Gather", RunGather},
      {"GatherElements", RunGatherElements},
      {"GatherND", RunGatherNd},
      {"Compress", RunCompress, FromOperands({1})},
      {"NonZero", RunNonZero, ResultSizes::kFromValues},
      {"ReverseSequence", RunReverseSequence},
  };
  return kRows;
}

}  // namespace ag::onnx_operators
