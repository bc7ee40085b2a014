// TopK and Unique.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "graph/onnx/operators/arithmetic.h"
#include "graph/onnx/operators/index_rows.h"
#include "graph/onnx/operators/layout.h"

namespace ag::onnx_operators {
namespace {

// NaN counts as the largest number; of equal ones the first comes first.
template <class T>
void SortTop(const AxisView& view, int64_t k, bool largest, const T* from, T* values,
             int64_t* indices) {
  std::vector<Wide<T>> line(static_cast<size_t>(view.size));
  Ints order(line.size());
  const auto before = [&](int64_t a, int64_t b) {
    const bool less = Precedes(line[a], line[b]), more = Precedes(line[b], line[a]);
    if (!less && !more) return a < b;
    return largest ? more : less;
  };
  for (int64_t o = 0; o < view.outer; ++o) {
    for (int64_t n = 0; n < view.inner; ++n) {
      for (int64_t i = 0; i < view.size; ++i) line[i] = from[view.At(o, i, n)];
      std::iota(order.begin(), order.end(), 0);
      std::partial_sort(order.begin(), order.begin() + k, order.end(), before);
      for (int64_t i = 0; i < k; ++i) {
        const int64_t at = (o * k + i) * view.inner + n;
        if (values != nullptr) values[at] = from[view.At(o, order[i], n)];
        if (indices != nullptr) indices[at] = order[i];
      }
    }
  }
}

// The results are sorted also where the node does not ask for it.
Status RunTopK(OperatorCall& call) {
  AG_TRY(call.opset() < 10 ? call.CheckInputs(1, 1) : call.CheckInputs(2, 2));
  AG_LET(const int64_t axis, call.Axis(-1));
  int64_t k = 0;
  if (call.opset() < 10) {
    if (!call.HasAttribute("k")) {
      return Err(StatusCode::kInvalidArgument, "attribute \"k\" is missing");
    }
    k = call.Int("k", 0);
  } else {
    AG_LET(k, call.IntAt(1));
  }
  const bool largest = call.opset() < 11 || call.Int("largest", 1) != 0;
  call.Ignore("sorted");
  const AxisView view = ViewAlong(call.ShapeOf(0), axis);
  if (k < 0 || k > view.size) {
    return Err(StatusCode::kInvalidArgument, "k is {}, axis {} of {}", k, axis,
               call.Type(0).ToString());
  }
  Shape shape = call.ShapeOf(0);
  shape[axis] = k;
  return ForNumbers(call.TypeOf(0), [&]<class T>() -> Status {
    T* values = nullptr;
    int64_t* indices = nullptr;
    if (call.Wants(0)) {
      AG_LET(values, call.Make<T>(0, shape));
    }
    if (call.Wants(1)) {
      AG_LET(indices, call.Make<int64_t>(1, shape));
    }
    if (NumElements(shape) == 0) return OkStatus();
    SortTop<T>(view, k, largest, call.Values<T>(0), values, indices);
    return OkStatus();
  });
}

// The slices of a tensor along an axis, as groups of equal ones.
struct Groups {
  Ints first;    // The first slice of each group.
  Ints counts;   // The slices of each group.
  Ints inverse;  // The group of each slice.
};

// Orders groups by their slices, or by their first slice.
template <class T>
Groups GroupsOf(const AxisView& view, bool sorted, const T* from) {
  using W = Wide<T>;
  // Returns a number below, equal to or above 0.
  const auto compare = [&](int64_t a, int64_t b) {
    for (int64_t o = 0; o < view.outer; ++o) {
      for (int64_t n = 0; n < view.inner; ++n) {
        const auto x = static_cast<W>(from[view.At(o, a, n)]);
        const auto y = static_cast<W>(from[view.At(o, b, n)]);
        if (Precedes(x, y)) return -1;
        if (Precedes(y, x)) return 1;
      }
    }
    return 0;
  };
  Ints order(static_cast<size_t>(view.size));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int64_t a, int64_t b) { return compare(a, b) < 0; });
  Groups groups;
  groups.inverse.resize(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || compare(order[i - 1], order[i]) != 0) {
      groups.first.push_back(order[i]);
      groups.counts.push_back(0);
    }
    ++groups.counts.back();
    groups.inverse[order[i]] = static_cast<int64_t>(groups.first.size()) - 1;
  }
  if (sorted) return groups;
  Ints rank(groups.first.size()), places(rank.size());
  std::iota(rank.begin(), rank.end(), 0);
  std::ranges::sort(rank, {}, [&](int64_t group) { return groups.first[group]; });
  Groups by_first = groups;
  for (size_t i = 0; i < rank.size(); ++i) {
    by_first.first[i] = groups.first[rank[i]];
    by_first.counts[i] = groups.counts[rank[i]];
    places[rank[i]] = static_cast<int64_t>(i);
  }
  for (int64_t& group : by_first.inverse) group = places[group];
  return by_first;
}

Status GiveInts(OperatorCall& call, size_t i, const Ints& ints) {
  if (!call.Wants(i)) return OkStatus();
  AG_LET(int64_t * to, call.Make<int64_t>(i, {static_cast<int64_t>(ints.size())}));
  std::ranges::copy(ints, to);
  return OkStatus();
}

Status RunUnique(OperatorCall& call) {
  AG_TRY(call.CheckInputs(1, 1));
  const bool sorted = call.Int("sorted", 1) != 0;
  Shape shape = {call.Type(0).NumElements()};
  int64_t axis = 0;
  if (call.HasAttribute("axis")) {
    AG_LET(axis, call.Axis(0));
    shape = call.ShapeOf(0);
  }
  const AxisView view = ViewAlong(shape, axis);
  if (NumElements(shape) == 0 && view.size > 0) {
    return Err(StatusCode::kUnimplemented, "slices of {} without elements", ShapeToString(shape));
  }
  const AxisView slices = view.size == 0 ? AxisView{.size = 0} : view;
  Groups groups;
  AG_TRY(ForAny(call.TypeOf(0), [&]<class T>() -> Status {
    groups = GroupsOf<T>(slices, sorted, call.Values<T>(0));
    return OkStatus();
  }));
  shape[axis] = static_cast<int64_t>(groups.first.size());
  AG_LET(char* to, call.MakeBytes(0, {call.TypeOf(0), shape}));
  const auto bytes = static_cast<size_t>(slices.inner * SizeOf(call.TypeOf(0)));
  for (int64_t o = 0; o < slices.outer; ++o) {
    for (const int64_t first : groups.first) {
      std::memcpy(to,
                  call.In(0).bytes().data() +
                      static_cast<size_t>(slices.At(o, first, 0)) * SizeOf(call.TypeOf(0)),
                  bytes);
      to += bytes;
    }
  }
  AG_TRY(GiveInts(call, 1, groups.first));
  AG_TRY(GiveInts(call, 2, groups.inverse));
  return GiveInts(call, 3, groups.counts);
}

}  // namespace

std::span<const OperatorRow> SortOperators() {
  static constexpr OperatorRow kRows[] = {
      {"TopK", RunTopK, FromOperands({1})},
      {"Unique", RunUnique, ResultSizes::kFromValues},
  };
  return kRows;
}

}  // namespace ag::onnx_operators
