// Operators along one axis: TopK, ArgMax and ArgMin, CumSum, LpNormalization. A tensor is outer x
// size x inner elements (AxisView); a line has `size` of them, `inner` apart.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "device/cpu/block_ops.h"
#include "device/cpu/kept.h"
#include "device/cpu/parallel.h"
#include "device/cpu/row_sums.h"
#include "graph/onnx/node_attributes.h"
#include "graph/onnx/operators/layout.h"

namespace ag::cpu {
namespace {

using onnx_operators::AxisView;
using onnx_operators::ViewAlong;

constexpr int64_t kBlock = 256;  // Lines that are beside each other and computed together.

// Calls body(o, n, count) for each part of at most kBlock lines beside each other, on the cores.
template <class Body>
void ForLines(int cores, const AxisView& view, const Body& body) {
  const int64_t blocks = (view.inner + kBlock - 1) / kBlock;
  const int64_t work = std::max<int64_t>(1, view.size * std::min(view.inner, kBlock));
  ParallelFor(cores, view.outer * blocks, std::max<int64_t>(1, kLightGrain / work),
              [&](int64_t begin, int64_t end, int) {
                for (int64_t i = begin; i < end; ++i) {
                  const int64_t n = i % blocks * kBlock;
                  body(i / blocks, n, std::min(kBlock, view.inner - n));
                }
              });
}

// The axis of operand 0 that the attribute names; kUnimplemented: none, or no elements.
StatusOr<AxisView> ViewOf(const KeptOperands& operands, const KeptOperator& kept,
                          NodeAttributes& attributes, int64_t otherwise) {
  if (!operands.Has(0) || NumElements(operands.ShapeOf(0)) == 0) return RefuseForm(kept);
  const Shape& x = operands.ShapeOf(0);
  const auto axis = ResolveAxis(attributes.Int("axis", otherwise), static_cast<int64_t>(x.size()));
  if (!axis.ok()) return RefuseForm(kept);
  return ViewAlong(x, *axis);
}

// --- TopK ---

// Returns an integer in the order of the numbers: equal for equal ones, NaN above all.
uint32_t OrderOf(float value) {
  if (std::isnan(value)) return ~uint32_t{0};
  const auto bits = std::bit_cast<uint32_t>(value + 0.0F);  // -0 becomes 0.
  return (bits >> 31) != 0 ? ~bits : bits | (uint32_t{1} << 31);
}

// Sets order[i] = OrderOf(from[i]), or its complement.
AG_CLONES void OrderLine(const float* from, int64_t n, uint32_t complement, uint32_t* order) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float value = from[i] + 0.0F;
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    const uint32_t sign = static_cast<uint32_t>(static_cast<int32_t>(bits) >> 31);
    const uint32_t number = bits ^ (sign | 0x80000000U);
    const bool is_nan = (bits & 0x7FFFFFFFU) > 0x7F800000U;
    order[i] = (is_nan ? ~uint32_t{0} : number) ^ complement;
  }
}

// Whether one of n numbers is above `bound`.
AG_CLONES bool AnyAbove(const uint32_t* order, int64_t n, uint32_t bound) {
  uint32_t any = 0;
#pragma omp simd reduction(| : any)
  for (int64_t i = 0; i < n; ++i) any |= order[i] > bound ? 1 : 0;
  return any != 0;
}

// The number and its place in one word: of equal numbers the first is above the others.
uint64_t KeyOf(uint32_t order, int64_t place) {
  return uint64_t{order} << 32 | static_cast<uint32_t>(~static_cast<uint32_t>(place));
}
int64_t PlaceOf(uint64_t key) { return static_cast<uint32_t>(~static_cast<uint32_t>(key)); }

// Sets keys[0, k) to the keys of the k greatest numbers, the greatest first. `keys` has room for n.
void GreatestKeys(const uint32_t* order, int64_t n, int64_t k, uint64_t* keys) {
  constexpr int64_t kHeapMax = 128, kStep = 64;
  if (k > kHeapMax || k * 4 > n) {
    for (int64_t i = 0; i < n; ++i) keys[i] = KeyOf(order[i], i);
    if (k < n) std::nth_element(keys, keys + k, keys + n, std::greater<>());
    std::sort(keys, keys + k, std::greater<>());
    return;
  }
  for (int64_t i = 0; i < k; ++i) keys[i] = KeyOf(order[i], i);
  std::make_heap(keys, keys + k, std::greater<>());  // The least is first.
  for (int64_t first = k; first < n; first += kStep) {
    const int64_t count = std::min(kStep, n - first);
    if (!AnyAbove(order + first, count, static_cast<uint32_t>(keys[0] >> 32))) continue;
    for (int64_t i = first; i < first + count; ++i) {
      const uint64_t key = KeyOf(order[i], i);
      if (key <= keys[0]) continue;
      std::pop_heap(keys, keys + k, std::greater<>());
      keys[k - 1] = key;
      std::push_heap(keys, keys + k, std::greater<>());
    }
  }
  std::sort(keys, keys + k, std::greater<>());
}

class KeptTopK : public Kernel {
 public:
  Status Prepare(const GroupContext& context, const KeptOperator& kept) {
    const KeptOperands operands(context, kept);
    NodeAttributes attributes(kept.node());
    AG_LET(view_, ViewOf(operands, kept, attributes, -1));
    if (!ArePlain(context.group) || operands.Type(0).dtype != DType::kFloat32) {
      return RefuseForm(kept);
    }
    // k is what the node says of its results; a run checks the operand.
    const Shape& result = context.node(0).outputs[0].shape;
    const Shape& x = operands.ShapeOf(0);
    const auto axis = ResolveAxis(attributes.Int("axis", -1), static_cast<int64_t>(x.size()));
    if (result.size() != x.size()) return RefuseForm(kept);
    k_ = result[static_cast<size_t>(*axis)];
    Shape expected = x;
    expected[static_cast<size_t>(*axis)] = k_;
    const bool fits = operands.ResultIs(0, expected) && operands.ResultIs(1, expected);
    if (!fits || k_ < 1 || k_ > view_.size || view_.size > (int64_t{1} << 31)) {
      return RefuseForm(kept);
    }
    if (kept.opset() < 10 ? attributes.Int("k", 0) != k_ : !operands.Has(1)) {
      return RefuseForm(kept);
    }
    if (kept.opset() >= 10) {
      if (NumElements(operands.ShapeOf(1)) != 1 || operands.Type(1).dtype != DType::kInt64) {
        return RefuseForm(kept);
      }
      AG_LET(asked_, KeptOperand::Of(context, operands, 1));
      has_asked_ = true;
    }
    largest_ = kept.opset() < 11 || attributes.Int("largest", 1) != 0;
    values_ = operands.OutputPort(0);
    indices_ = operands.OutputPort(1);
    cores_ = context.cores;
    AG_LET(x_, KeptOperand::Of(context, operands, 0));
    return OkStatus();
  }

  size_t scratch_bytes() const override { return LineBytes() * static_cast<size_t>(cores_); }

  Status Run(const RunContext& context, Inputs inputs, Outputs outputs) override {
    if (has_asked_ && *static_cast<const int64_t*>(asked_.At(inputs)) != k_) {
      return Err(StatusCode::kInvalidArgument, "TopK: k is not {}, which the model's sizes say",
                 k_);
    }
    const auto* x = static_cast<const float*>(x_.At(inputs));
    auto* values = values_ < 0 ? nullptr : static_cast<float*>(outputs[values_]);
    auto* indices = indices_ < 0 ? nullptr : static_cast<int64_t*>(outputs[indices_]);
    const int64_t lines = view_.outer * view_.inner;
    const int64_t grain = std::max<int64_t>(1, kLightGrain / view_.size);
    ParallelFor(cores_, lines, grain, [&](int64_t begin, int64_t end, int worker) {
      auto* keys =
          reinterpret_cast<uint64_t*>(context.scratch + LineBytes() * static_cast<size_t>(worker));
      auto* order = reinterpret_cast<uint32_t*>(keys + view_.size);
      for (int64_t line = begin; line < end; ++line) {
        const int64_t o = line / view_.inner, n = line % view_.inner;
        const uint32_t complement = largest_ ? 0 : ~uint32_t{0};
        if (view_.inner == 1) {
          OrderLine(x + o * view_.size, view_.size, complement, order);
        } else {
          for (int64_t i = 0; i < view_.size; ++i) {
            order[i] = OrderOf(x[view_.At(o, i, n)]) ^ complement;
          }
        }
        GreatestKeys(order, view_.size, k_, keys);
        for (int64_t i = 0; i < k_; ++i) {
          const int64_t at = (o * k_ + i) * view_.inner + n, place = PlaceOf(keys[i]);
          if (values != nullptr) values[at] = x[view_.At(o, place, n)];
          if (indices != nullptr) indices[at] = place;
        }
      }
    });
    return OkStatus();
  }

 private:
  size_t LineBytes() const {
    return AlignUp(static_cast<size_t>(view_.size) * (sizeof(uint64_t) + sizeof(uint32_t)));
  }

  KeptOperand x_, asked_;
  AxisView view_;
  int64_t k_ = 0;
  bool largest_ = true, has_asked_ = false;
  int values_ = -1, indices_ = -1;
  int cores_ = 1;
};

// --- ArgMax, ArgMin ---

// Takes the numbers of a row where they are above the best so far, or as great and `last`. The
// first NaN of a line is above all that follows.
template <bool largest, bool last>
inline void TakeRow(const float* row, int64_t n, int32_t place, float* best, int32_t* at) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float x = row[i], y = best[i];
    const bool above = largest ? (last ? x >= y : x > y) : (last ? x <= y : x < y);
    const bool is_nan = x != x, had_nan = y != y;
    const bool takes = (above | is_nan) & !had_nan;
    best[i] = takes ? x : y;
    at[i] = takes ? place : at[i];
  }
}
using TakeRowFn = void (*)(const float*, int64_t, int32_t, float*, int32_t*);
AG_CLONES void TakeMax(const float* row, int64_t n, int32_t place, float* best, int32_t* at) {
  TakeRow<true, false>(row, n, place, best, at);
}
AG_CLONES void TakeLastMax(const float* row, int64_t n, int32_t place, float* best, int32_t* at) {
  TakeRow<true, true>(row, n, place, best, at);
}
AG_CLONES void TakeMin(const float* row, int64_t n, int32_t place, float* best, int32_t* at) {
  TakeRow<false, false>(row, n, place, best, at);
}
AG_CLONES void TakeLastMin(const float* row, int64_t n, int32_t place, float* best, int32_t* at) {
  TakeRow<false, true>(row, n, place, best, at);
}

constexpr int64_t kLanes = 64;  // A line by itself is taken as rows of so many numbers.

class KeptArg : public Kernel {
 public:
  Status Prepare(const GroupContext& context, const KeptOperator& kept) {
    const KeptOperands operands(context, kept);
    NodeAttributes attributes(kept.node());
    AG_LET(view_, ViewOf(operands, kept, attributes, 0));
    const bool is_float = operands.Type(0).dtype == DType::kFloat32;
    const int64_t results = NumElements(context.node(0).outputs[0].shape);
    if (!ArePlain(context.group) || !is_float || results != view_.outer * view_.inner ||
        view_.size >= (int64_t{1} << 31)) {
      return RefuseForm(kept);
    }
    const bool largest = kept.node().op_type == "ArgMax";
    last_ = attributes.Int("select_last_index", 0) != 0;
    take_ = largest ? (last_ ? TakeLastMax : TakeMax) : (last_ ? TakeLastMin : TakeMin);
    largest_ = largest;
    cores_ = context.cores;
    AG_LET(x_, KeptOperand::Of(context, operands, 0));
    return OkStatus();
  }

  Status Run(const RunContext&, Inputs inputs, Outputs outputs) override {
    const auto* x = static_cast<const float*>(x_.At(inputs));
    auto* to = static_cast<int64_t*>(outputs[0]);
    ForLines(cores_, view_, [&](int64_t o, int64_t n, int64_t count) {
      const float* from = x + o * view_.size * view_.inner + n;
      if (view_.inner == 1) {
        to[o] = OfLine(from);
        return;
      }
      float best[kBlock];
      int32_t at[kBlock] = {};
      std::copy_n(from, count, best);
      for (int64_t i = 1; i < view_.size; ++i) {
        take_(from + i * view_.inner, count, static_cast<int32_t>(i), best, at);
      }
      std::copy_n(at, count, to + o * view_.inner + n);
    });
    return OkStatus();
  }

 private:
  // Takes a line that has no neighbours as kLanes lines, and then the best of them.
  int64_t OfLine(const float* line) const {
    const int64_t lanes = std::min(kLanes, view_.size);
    float best[kLanes];
    int32_t at[kLanes] = {};
    std::copy_n(line, lanes, best);
    const int64_t rows = view_.size / lanes;
    for (int64_t row = 1; row < rows; ++row) {
      take_(line + row * lanes, lanes, static_cast<int32_t>(row), best, at);
    }
    int64_t place = -1;
    float value = 0;
    const auto offer = [&](int64_t other, float x) {
      const bool wins = place < 0 || IsAbove(x, value);
      const bool ties = place >= 0 && !wins && !IsAbove(value, x);
      if (!wins && !(ties && (last_ && !std::isnan(x) ? other > place : other < place))) return;
      place = other;
      value = x;
    };
    for (int64_t i = 0; i < lanes; ++i) offer(at[i] * lanes + i, best[i]);
    for (int64_t i = rows * lanes; i < view_.size; ++i) offer(i, line[i]);
    return place;
  }
  bool IsAbove(float a, float b) const {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && !std::isnan(b);
    return largest_ ? a > b : a < b;
  }

  KeptOperand x_;
  AxisView view_;
  TakeRowFn take_ = nullptr;
  bool last_ = false, largest_ = true;
  int cores_ = 1;
};

// --- CumSum ---

// Integers wrap, so they are summed without a sign; floats are summed in double.
template <class T>
using SumOf = std::conditional_t<
    std::is_floating_point_v<T>, double,
    std::make_unsigned_t<std::conditional_t<std::is_floating_point_v<T>, int, T>>>;

// One step of lines beside each other.
template <class T>
inline void AddStep(const T* x, int64_t n, bool exclusive, SumOf<T>* sums, T* y) {
  if (exclusive) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<T>(sums[i]);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) sums[i] += static_cast<SumOf<T>>(x[i]);
    return;
  }
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) sums[i] += static_cast<SumOf<T>>(x[i]);
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<T>(sums[i]);
}

class KeptCumSum : public Kernel {
 public:
  Status Prepare(const GroupContext& context, const KeptOperator& kept) {
    const KeptOperands operands(context, kept);
    NodeAttributes attributes(kept.node());
    if (!operands.Has(0) || !operands.IsConstant(1) || !ArePlain(context.group) ||
        NumElements(operands.ShapeOf(0)) == 0 || NumElements(operands.ShapeOf(1)) != 1 ||
        !operands.ResultIs(0, operands.ShapeOf(0))) {
      return RefuseForm(kept);
    }
    dtype_ = operands.Type(0).dtype;
    if (dtype_ != DType::kFloat32 && dtype_ != DType::kInt64 && dtype_ != DType::kInt32) {
      return RefuseForm(kept);
    }
    exclusive_ = attributes.Int("exclusive", 0) != 0;
    reverse_ = attributes.Int("reverse", 0) != 0;
    cores_ = context.cores;
    AG_LET(x_, KeptOperand::Of(context, operands, 0));
    if (context.constants == nullptr) return OkStatus();
    AG_LET(const KeptOperand given, KeptOperand::Of(context, operands, 1));
    const auto axes = IntsOf(given.held());
    const Shape& x = operands.ShapeOf(0);
    const auto axis = axes.ok() ? ResolveAxis((*axes)[0], static_cast<int64_t>(x.size()))
                                : StatusOr<int64_t>(axes.status());
    axis_error_ = axis.status();
    if (axis.ok()) view_ = ViewAlong(x, *axis);
    return OkStatus();
  }

  Status Run(const RunContext&, Inputs inputs, Outputs outputs) override {
    AG_TRY(axis_error_);
    if (dtype_ == DType::kFloat32) {
      Sum(static_cast<const float*>(x_.At(inputs)), static_cast<float*>(outputs[0]));
    } else if (dtype_ == DType::kInt64) {
      Sum(static_cast<const int64_t*>(x_.At(inputs)), static_cast<int64_t*>(outputs[0]));
    } else {
      Sum(static_cast<const int32_t*>(x_.At(inputs)), static_cast<int32_t*>(outputs[0]));
    }
    return OkStatus();
  }

 private:
  template <class T>
  void Sum(const T* x, T* y) const {
    ForLines(cores_, view_, [&](int64_t o, int64_t n, int64_t count) {
      SumOf<T> sums[kBlock] = {};
      for (int64_t i = 0; i < view_.size; ++i) {
        const int64_t at = view_.At(o, reverse_ ? view_.size - 1 - i : i, n);
        AddStep(x + at, count, exclusive_, sums, y + at);
      }
    });
  }

  KeptOperand x_;
  AxisView view_;
  Status axis_error_;
  DType dtype_ = DType::kFloat32;
  bool exclusive_ = false, reverse_ = false;
  int cores_ = 1;
};

// --- LpNormalization ---

AG_CLONES void AddPowers(const float* row, int64_t n, bool absolute, float* sums) {
  if (absolute) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) sums[i] += row[i] < 0 ? -row[i] : row[i];
    return;
  }
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) sums[i] += row[i] * row[i];
}

AG_CLONES void DivideRow(const float* row, const float* by, int64_t n, float* to) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) to[i] = row[i] / by[i];
}

class KeptLpNorm : public Kernel {
 public:
  Status Prepare(const GroupContext& context, const KeptOperator& kept) {
    const KeptOperands operands(context, kept);
    NodeAttributes attributes(kept.node());
    AG_LET(view_, ViewOf(operands, kept, attributes, -1));
    const int64_t p = attributes.Int("p", 2);
    if (!operands.IsPlainFloat() || !operands.ResultIs(0, operands.ShapeOf(0)) ||
        (p != 1 && p != 2)) {
      return RefuseForm(kept);
    }
    absolute_ = p == 1;
    cores_ = context.cores;
    AG_LET(x_, KeptOperand::Of(context, operands, 0));
    return OkStatus();
  }

  Status Run(const RunContext&, Inputs inputs, Outputs outputs) override {
    const auto* x = static_cast<const float*>(x_.At(inputs));
    auto* y = static_cast<float*>(outputs[0]);
    ForLines(cores_, view_, [&](int64_t o, int64_t n, int64_t count) {
      const int64_t first = view_.At(o, 0, n);
      if (view_.inner == 1) {
        NormLine(x + first, y + first);
        return;
      }
      float norms[kBlock] = {};
      for (int64_t i = 0; i < view_.size; ++i) {
        AddPowers(x + first + i * view_.inner, count, absolute_, norms);
      }
      for (int64_t j = 0; j < count; ++j) norms[j] = NormOf(norms[j]);
      for (int64_t i = 0; i < view_.size; ++i) {
        DivideRow(x + first + i * view_.inner, norms, count, y + first + i * view_.inner);
      }
    });
    return OkStatus();
  }

 private:
  // A line of zeros stays.
  float NormOf(float sum) const {
    const float norm = absolute_ ? sum : std::sqrt(sum);
    return norm == 0 ? 1 : norm;
  }
  void NormLine(const float* line, float* to) const {
    float sums[kLanes] = {}, by[kLanes];
    for (int64_t i = 0; i < view_.size; i += kLanes) {
      AddPowers(line + i, std::min(kLanes, view_.size - i), absolute_, sums);
    }
    double sum = 0;
    for (const float s : sums) sum += s;
    std::fill_n(by, kLanes, NormOf(static_cast<float>(sum)));
    for (int64_t i = 0; i < view_.size; i += kLanes) {
      DivideRow(line + i, by, std::min(kLanes, view_.size - i), to + i);
    }
  }

  KeptOperand x_;
  AxisView view_;
  bool absolute_ = false;
  int cores_ = 1;
};

}  // namespace

StatusOr<std::unique_ptr<Kernel>> MakeTopK(const GroupContext& context, const KeptOperator& kept) {
  return PreparedKept<KeptTopK>(context, kept);
}
StatusOr<std::unique_ptr<Kernel>> MakeArg(const GroupContext& context, const KeptOperator& kept) {
  return PreparedKept<KeptArg>(context, kept);
}
StatusOr<std::unique_ptr<Kernel>> MakeCumSum(const GroupContext& context,
                                             const KeptOperator& kept) {
  return PreparedKept<KeptCumSum>(context, kept);
}
StatusOr<std::unique_ptr<Kernel>> MakeLpNorm(const GroupContext& context,
                                             const KeptOperator& kept) {
  return PreparedKept<KeptLpNorm>(context, kept);
}

}  // namespace ag::cpu
