// Reductions, positions of extremes, running sums.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "graph/onnx/operators/arithmetic.h"
#include "graph/onnx/operators/layout.h"
#include "graph/onnx/operators/wide.h"

namespace ag::onnx_operators {
namespace {

// The shape of a reduction's result, and for each axis of the operand its stride in the result: 0
// along a reduced one.
struct Reduced {
  Shape shape;
  Ints strides;
  int64_t group = 1;  // Elements that become one.
};

StatusOr<Ints> ReducedAxes(OperatorCall& call, int64_t axes_are_input_since) {
  std::optional<Ints> axes;
  bool keep_all = false;
  if (call.opset() < axes_are_input_since) {
    AG_TRY(call.CheckInputs(1, 1));
    axes = call.IntList("axes");
  } else {
    AG_TRY(call.CheckInputs(1, 2));
    keep_all = call.Int("noop_with_empty_axes", 0) != 0;
    if (call.Has(1)) {
      AG_LET(axes, call.IntsAt(1));
    }
  }
  if ((!axes.has_value() || axes->empty()) && !keep_all) {
    axes = Ints(call.Rank(0));
    std::iota(axes->begin(), axes->end(), 0);
  }
  return ResolveAxes(axes.value_or(Ints{}), call.Rank(0));
}

Reduced Without(const Shape& from, const Ints& axes, bool keepdims) {
  Reduced reduced;
  Shape kept = from;
  for (size_t i = 0; i < from.size(); ++i) {
    const bool away = std::ranges::count(axes, static_cast<int64_t>(i)) > 0;
    if (away) {
      kept[i] = 1;
      reduced.group *= from[i];
    }
    if (!away || keepdims) reduced.shape.push_back(kept[i]);
  }
  reduced.strides = BroadcastStrides(kept, from);
  for (const int64_t axis : axes) reduced.strides[axis] = 0;
  return reduced;
}

// A reduction has a state A for each element of the result: Start makes it, Add takes an element
// of type W, Result gives the element. Integers that need a logarithm or a root are reduced in
// double precision.
struct AddUp {
  template <class W>
  static W Start(DType) {
    return 0;
  }
  template <class W>
  static void Add(W& state, W value) {
    state = Plus(state, value);
  }
  template <class W>
  static W Result(W state, int64_t) {
    return state;
  }
};

struct Average : AddUp {
  template <class W>
  static W Result(W state, int64_t group) {
    return static_cast<W>(state / static_cast<W>(group));
  }
};

struct Multiply : AddUp {
  template <class W>
  static W Start(DType) {
    return 1;
  }
  template <class W>
  static void Add(W& state, W value) {
    state = Times(state, value);
  }
};

struct Greatest : AddUp {
  template <class W>
  static W Start(DType dtype) {
    return LimitsOf<W>(dtype).first;
  }
  template <class W>
  static void Add(W& state, W value) {
    state = Larger(state, value);
  }
};

struct Least : AddUp {
  template <class W>
  static W Start(DType dtype) {
    return LimitsOf<W>(dtype).second;
  }
  template <class W>
  static void Add(W& state, W value) {
    state = Smaller(state, value);
  }
};

struct AddMagnitudes : AddUp {
  template <class W>
  static void Add(W& state, W value) {
    state = Plus(state, value < 0 ? Minus<W>(0, value) : value);
  }
};

struct AddSquares : AddUp {
  template <class W>
  static void Add(W& state, W value) {
    state = Plus(state, Times(value, value));
  }
};

struct Length : AddSquares {
  template <class W>
  static W Result(W state, int64_t) {
    return std::sqrt(state);
  }
};

struct LogOfSum : AddUp {
  template <class W>
  static W Result(W state, int64_t) {
    return std::log(state);
  }
};

// The sum of exp(x - max), with the greatest x so far as max.
struct ExpSum {
  double max = -std::numeric_limits<double>::infinity();
  double sum = 0;
};
struct LogOfExpSum {
  template <class W>
  static ExpSum Start(DType) {
    return {};
  }
  static void Add(ExpSum& state, double value) {
    if (value > state.max) {
      state.sum = state.sum * std::exp(state.max - value) + 1;
      state.max = value;
    } else if (value == state.max) {
      // An infinite difference of equals is no number.
      if (value > -std::numeric_limits<double>::infinity()) state.sum += 1;
    } else {
      state.sum += std::exp(value - state.max);
    }
  }
  static double Result(const ExpSum& state, int64_t) { return state.max + std::log(state.sum); }
};

template <class Kind, class W>
Status ReduceAs(OperatorCall& call, const Reduced& reduced) {
  const TensorType type{call.TypeOf(0), reduced.shape};
  AG_TRY(call.MakeBytes(0, type));  // Checks the size.
  const auto start = Kind::template Start<W>(type.dtype);
  std::vector<std::decay_t<decltype(start)>> states(static_cast<size_t>(type.NumElements()), start);
  const std::vector<W> values = Widened<W>(call.In(0));
  const W* value = values.data();
  Walk<1>(call.ShapeOf(0), {reduced.strides},
          [&](const std::array<int64_t, 1>& at) { Kind::Add(states[at[0]], *value++); });
  std::vector<W> results;
  results.reserve(states.size());
  for (const auto& state : states) results.push_back(Kind::Result(state, reduced.group));
  return GiveNarrowed(call, 0, type, results);
}

// `since`: the opset in which the axes became an input.
template <class Kind, int64_t since = 18>
Status RunReduce(OperatorCall& call) {
  AG_LET(const Ints axes, ReducedAxes(call, since));
  const Reduced reduced = Without(call.ShapeOf(0), axes, call.Int("keepdims", 1) != 0);
  const DType dtype = call.TypeOf(0);
  constexpr bool kNeedsDouble = std::is_same_v<Kind, Length> || std::is_same_v<Kind, LogOfSum> ||
                                std::is_same_v<Kind, LogOfExpSum>;
  if (std::is_same_v<Kind, Average> && reduced.group == 0 && !IsFloat(dtype)) {
    return Err(StatusCode::kInvalidArgument, "{} has no mean", call.Type(0).ToString());
  }
  if constexpr (kNeedsDouble) {
    AG_TRY(CheckHasWide(dtype));
    return ReduceAs<Kind, double>(call, reduced);
  } else {
    return ForWide(dtype, [&]<class W>() { return ReduceAs<Kind, W>(call, reduced); });
  }
}

// Sets to[n] to the position of the extreme of each line, of those beside each other at once: the
// first NaN, if there is one; else the first or last of equal elements.
template <class T, bool largest>
void Extremes(const T* from, const AxisView& view, bool last, int64_t* to) {
  using W = Wide<T>;
  std::vector<W> best(static_cast<size_t>(view.inner));
  for (int64_t o = 0; o < view.outer; ++o, to += view.inner) {
    const T* row = from + o * view.size * view.inner;
    for (int64_t n = 0; n < view.inner; ++n) best[n] = static_cast<W>(row[n]);
    std::fill_n(to, view.inner, 0);
    for (int64_t i = 1; i < view.size; ++i) {
      row += view.inner;
      for (int64_t n = 0; n < view.inner; ++n) {
        const W value = static_cast<W>(row[n]);
        // A NaN is no less than anything, nor more.
        const bool rest = largest ? value <= best[n] : value >= best[n];
        if (rest && !(last && value == best[n])) continue;
        if (IsNan(best[n])) continue;
        best[n] = value;
        to[n] = i;
      }
    }
  }
}

template <bool largest>
Status RunArg(OperatorCall& call) {
  AG_TRY(call.CheckInputs(1, 1));
  AG_LET(const int64_t axis, call.Axis(0));
  const bool last = call.Int("select_last_index", 0) != 0;
  const AxisView view = ViewAlong(call.ShapeOf(0), axis);
  const Reduced reduced = Without(call.ShapeOf(0), {axis}, call.Int("keepdims", 1) != 0);
  AG_LET(int64_t * to, call.Make<int64_t>(0, reduced.shape));
  if (NumElements(reduced.shape) == 0) return OkStatus();
  if (view.size == 0) {
    return Err(StatusCode::kInvalidArgument, "axis {} of {} is empty", axis,
               call.Type(0).ToString());
  }
  return ForAny(call.TypeOf(0), [&]<class T>() {
    Extremes<T, largest>(call.Values<T>(0), view, last, to);
    return OkStatus();
  });
}

// Before opset 13 the axes from `axis` on were one.
Status RunHardmax(OperatorCall& call) {
  AG_TRY(call.CheckInputs(1, 1));
  const bool flat = call.opset() < 13;
  AG_LET(const int64_t axis, call.Axis(flat ? 1 : -1));
  AxisView view = ViewAlong(call.ShapeOf(0), axis);
  if (flat) view = {.outer = view.outer, .size = view.size * view.inner, .inner = 1};
  return ForFloats(call.TypeOf(0), [&]<class T>() -> Status {
    AG_LET(T * to, call.Make<T>(0, call.ShapeOf(0)));
    if (call.Type(0).NumElements() == 0) return OkStatus();
    Ints at(static_cast<size_t>(view.outer * view.inner));
    Extremes<T, true>(call.Values<T>(0), view, false, at.data());
    for (int64_t i = 0; i < static_cast<int64_t>(at.size()); ++i) {
      to[view.At(i / view.inner, at[i], i % view.inner)] = static_cast<T>(1);
    }
    return OkStatus();
  });
}

// Sums or products of all elements before each one along an axis.
template <bool multiplies>
Status RunCumulative(OperatorCall& call) {
  AG_TRY(call.CheckInputs(2, 2));
  AG_LET(const int64_t given, call.IntAt(1));
  AG_LET(const int64_t axis, ResolveAxis(given, call.Rank(0)));
  const bool exclusive = call.Int("exclusive", 0) != 0, reverse = call.Int("reverse", 0) != 0;
  const AxisView view = ViewAlong(call.ShapeOf(0), axis);
  return ForWide(call.TypeOf(0), [&]<class W>() -> Status {
    const std::vector<W> values = Widened<W>(call.In(0));
    std::vector<W> sums(values.size()), so_far(static_cast<size_t>(view.inner));
    for (int64_t o = 0; !values.empty() && o < view.outer; ++o) {
      std::ranges::fill(so_far, multiplies ? 1 : 0);
      for (int64_t step = 0; step < view.size; ++step) {
        const int64_t first = view.At(o, reverse ? view.size - 1 - step : step, 0);
        for (int64_t n = 0; n < view.inner; ++n) {
          W& sum = so_far[n];
          const W next = multiplies ? Times(sum, values[first + n]) : Plus(sum, values[first + n]);
          sums[first + n] = exclusive ? sum : next;
          sum = next;
        }
      }
    }
    return GiveNarrowed(call, 0, call.Type(0), sums);
  });
}

}  // namespace

std::span<const OperatorRow> ReduceOperators() {
  static constexpr ResultSizes kByAxes = FromOperands({1});
  static constexpr OperatorRow kRows[] = {
      {"ReduceSum", RunReduce<AddUp, 13>, kByAxes},
      {"ReduceMean", RunReduce<Average>, kByAxes},
      {"ReduceProd", RunReduce<Multiply>, kByAxes},
      {"ReduceMax", RunReduce<Greatest>, kByAxes},
      {"ReduceMin", RunReduce<Least>, kByAxes},
      {"ReduceL1", RunReduce<AddMagnitudes>, kByAxes},
      {"ReduceL2", RunReduce<Length>, kByAxes},
      {"ReduceSumSquare", RunReduce<AddSquares>, kByAxes},
      {"ReduceLogSum", RunReduce<LogOfSum>, kByAxes},
      {"ReduceLogSumExp", RunReduce<LogOfExpSum>, kByAxes},
      {"ArgMax", RunArg<true>},
      {"ArgMin", RunArg<false>},
      {"CumSum", RunCumulative<false>},
      {"CumProd", RunCumulative<true>},
      {"Hardmax", RunHardmax},
  };
  return kRows;
}

}  // namespace ag::onnx_operators
