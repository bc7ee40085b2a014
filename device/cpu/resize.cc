// Resize. Kernel "rows": each row of the output is a weighted sum of rows of the input over the
// outer axes, which is then summed along the row. A row is the last axis that changes, with
// everything that lies inside it (channels or one block of them): loops over these, or over the
// row, are vectorized.
#include <algorithm>
#include <cstring>

#include "device/cpu/block_ops.h"
#include "device/cpu/fast_math.h"
#include "device/cpu/kernel.h"
#include "device/cpu/parallel.h"
#include "graph/resize.h"

namespace ag::cpu {
namespace {

// One axis in memory order; `taps` is for axes that change.
struct Axis {
  int64_t in = 1, out = 1;
  bool changes = false;
  ResizeTaps taps;
};

struct ResizeProblem {
  bool moves = false;  // Nearest: elements are copied, whatever their type.
  int64_t element_bytes = 4;
  std::vector<Axis> outer;
  Axis along;
  int64_t lanes = 1;  // Elements inside one step of `along`.
  int64_t rows = 1;   // Of the output.
  int64_t row_in() const { return along.in * lanes; }
  int64_t row_out() const { return along.out * lanes; }
};

Axis Whole(int64_t size) { return {.in = size, .out = size}; }

Axis AxisOf(const Resize& resize, size_t axis) {
  const ResizeAxis& a = resize.axes[axis];
  if (a.is_identity) return Whole(a.in);
  return {.in = a.in, .out = a.out, .changes = true, .taps = TapsOf(resize, axis)};
}

// Returns the axes in memory order, outermost first.
std::vector<Axis> AxesIn(const Resize& resize, Layout layout) {
  std::vector<Axis> axes;
  if (layout == Layout::kPlain) {
    for (size_t i = 0; i < resize.axes.size(); ++i) axes.push_back(AxisOf(resize, i));
    return axes;
  }
  const int64_t channels = resize.axes[1].in;
  const bool is_last = layout == Layout::kChannelsLast;
  const int64_t block = is_last ? channels : BlockOf(layout);
  axes = {Whole(resize.axes[0].in), Whole((channels + block - 1) / block), AxisOf(resize, 2),
          AxisOf(resize, 3), Whole(block)};
  return axes;
}

ResizeProblem ResizeProblemOf(const GroupContext& context) {
  const Node& node = context.node(0);
  const TensorType& x = context.graph.type(node.inputs[0]);
  const Resize resize = ResizeOf(*node.attributes, x.shape);
  ResizeProblem p{.moves = resize.mode == Resize::Mode::kNearest, .element_bytes = SizeOf(x.dtype)};
  std::vector<Axis> axes = AxesIn(resize, context.group.outputs[0].layout);
  while (!axes.empty() && !axes.back().changes) {
    p.lanes *= axes.back().in;
    axes.pop_back();
  }
  if (axes.empty()) return p;  // Nothing changes: all elements are one row.
  p.along = std::move(axes.back());
  axes.pop_back();
  for (Axis& axis : axes) {
    p.rows *= axis.out;
    if (!p.outer.empty() && !p.outer.back().changes && !axis.changes) {
      p.outer.back() = Whole(p.outer.back().in * axis.in);
    } else {
      p.outer.push_back(std::move(axis));
    }
  }
  return p;
}

// Computes to[i] (+)= v * a[i] + w * b[i].
template <class T>
AG_INLINE void AddTwo(const T* a, const T* b, T v, T w, bool adds, T* to, int64_t n) {
  if (adds) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) to[i] += v * a[i] + w * b[i];
  } else {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) to[i] = v * a[i] + w * b[i];
  }
}
AG_CLONES void AddRows(const float* a, const float* b, float v, float w, bool adds, float* to,
                       int64_t n) {
  AddTwo(a, b, v, w, adds, to, n);
}
void AddRows(const double* a, const double* b, double v, double w, bool adds, double* to,
             int64_t n) {
  AddTwo(a, b, v, w, adds, to, n);
}

// Computes to[i] = the sum over t of weights[t * n + i] * row[elements[t * n + i]].
template <int K, class T>
AG_INLINE void SumOf(const T* row, const int32_t* elements, const T* weights, T* to, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    T sum = 0;
    for (int t = 0; t < K; ++t) sum += weights[t * n + i] * row[elements[t * n + i]];
    to[i] = sum;
  }
}
AG_CLONES void SumAlong(const float* row, const int32_t* elements, const float* weights, int64_t k,
                        float* to, int64_t n) {
  k == 2 ? SumOf<2>(row, elements, weights, to, n) : SumOf<4>(row, elements, weights, to, n);
}
void SumAlong(const double* row, const int32_t* elements, const double* weights, int64_t k,
              double* to, int64_t n) {
  k == 2 ? SumOf<2>(row, elements, weights, to, n) : SumOf<4>(row, elements, weights, to, n);
}

// The rows of the input that make up a row of the output, one combination of taps at a time.
class Sources {
 public:
  explicit Sources(const ResizeProblem& p) : p_(p) {
    for (const Axis& axis : p.outer) count_ *= axis.changes ? axis.taps.count : 1;
  }

  int64_t count() const { return count_; }
  // Returns the first element and the weight of combination `tap` of output row `row`.
  std::pair<int64_t, double> Of(int64_t row, int64_t tap) const {
    int64_t begin = 0, pitch = p_.row_in();
    double weight = 1;
    for (size_t i = p_.outer.size(); i-- > 0;) {
      const Axis& axis = p_.outer[i];
      int64_t at = row % axis.out;
      row /= axis.out;
      if (axis.changes) {
        const int64_t t = at * axis.taps.count + tap % axis.taps.count;
        tap /= axis.taps.count;
        at = axis.taps.elements[t];
        weight *= axis.taps.weights[t];
      }
      begin += at * pitch;
      pitch *= axis.in;
    }
    return {begin, weight};
  }

 private:
  const ResizeProblem& p_;
  int64_t count_ = 1;
};

int64_t GrainOf(const ResizeProblem& p, int64_t taps) {
  return std::max<int64_t>(kLightGrain / std::max<int64_t>(p.row_out() * taps, 1), 1);
}

// Copies the nearest elements. A row from the same input row as the one before is copied from that
// one.
class NearestRows : public Kernel {
 public:
  NearestRows(ResizeProblem problem, int port, int cores)
      : p_(std::move(problem)), sources_(p_), port_(port), cores_(cores) {}

  Status Run(const RunContext&, Inputs inputs, Outputs outputs) override {
    const auto* from = static_cast<const std::byte*>(inputs[port_]);
    auto* to = static_cast<std::byte*>(outputs[0]);
    const int64_t bytes = p_.row_out() * p_.element_bytes;
    if (bytes == 0) return OkStatus();
    ParallelFor(cores_, p_.rows, GrainOf(p_, 1), [&](int64_t begin, int64_t end, int) {
      int64_t before = -1;
      for (int64_t row = begin; row < end; ++row) {
        const int64_t source = sources_.Of(row, 0).first;
        std::byte* target = to + row * bytes;
        if (source == before) {
          std::memcpy(target, target - bytes, bytes);
        } else {
          Row(from + source * p_.element_bytes, target);
        }
        before = source;
      }
    });
    return OkStatus();
  }

 private:
  void Row(const std::byte* from, std::byte* to) const {
    if (p_.lanes > 1 || !p_.along.changes) {
      const int64_t bytes = p_.lanes * p_.element_bytes;
      for (int64_t i = 0; i < p_.along.out; ++i) {
        const int64_t element = p_.along.changes ? p_.along.taps.elements[i] : i;
        std::memcpy(to + i * bytes, from + element * bytes, bytes);
      }
      return;
    }
    switch (p_.element_bytes) {
      case 1:
        return Pick<uint8_t>(from, to);
      case 2:
        return Pick<uint16_t>(from, to);
      case 4:
        return Pick<uint32_t>(from, to);
      default:
        return Pick<uint64_t>(from, to);
    }
  }

  template <class T>
  void Pick(const std::byte* from, std::byte* to) const {
    const auto* row = reinterpret_cast<const T*>(from);
    auto* out = reinterpret_cast<T*>(to);
    for (int64_t i = 0; i < p_.along.out; ++i) out[i] = row[p_.along.taps.elements[i]];
  }

  const ResizeProblem p_;
  const Sources sources_;
  int port_;
  int cores_;
};

template <class T>
class WeightedRows : public Kernel {
 public:
  WeightedRows(ResizeProblem problem, int port, int cores)
      : p_(std::move(problem)), sources_(p_), port_(port), cores_(cores) {
    const ResizeTaps& taps = p_.along.taps;
    for (int64_t t = 0; t < taps.count && p_.along.changes; ++t) {
      for (int64_t i = 0; i < p_.along.out; ++i) {
        elements_.push_back(static_cast<int32_t>(taps.elements[i * taps.count + t]));
        weights_.push_back(static_cast<T>(taps.weights[i * taps.count + t]));
      }
    }
  }

  Status Run(const RunContext& context, Inputs inputs, Outputs outputs) override {
    const auto* from = static_cast<const T*>(inputs[port_]);
    auto* to = static_cast<T*>(outputs[0]);
    if (p_.row_out() == 0) return OkStatus();
    const int64_t grain = GrainOf(p_, sources_.count() + p_.along.taps.count);
    ParallelFor(cores_, p_.rows, grain, [&](int64_t begin, int64_t end, int worker) {
      T* middle = reinterpret_cast<T*>(context.scratch + worker * middle_bytes());
      for (int64_t row = begin; row < end; ++row) {
        Along(Combined(from, row, middle), to + row * p_.row_out());
      }
    });
    return OkStatus();
  }

  size_t scratch_bytes() const override { return cores_ * middle_bytes(); }

 private:
  size_t middle_bytes() const {
    return sources_.count() == 1 ? 0 : AlignUp(p_.row_in() * sizeof(T));
  }

  // Returns the weighted sum of the input rows for output row `row`.
  const T* Combined(const T* from, int64_t row, T* middle) const {
    if (sources_.count() == 1) return from + sources_.Of(row, 0).first;
    for (int64_t tap = 0; tap < sources_.count(); tap += 2) {  // The number is even.
      const auto [a, v] = sources_.Of(row, tap);
      const auto [b, w] = sources_.Of(row, tap + 1);
      AddRows(from + a, from + b, static_cast<T>(v), static_cast<T>(w), tap > 0, middle,
              p_.row_in());
    }
    return middle;
  }

  void Along(const T* row, T* to) const {
    const int64_t lanes = p_.lanes, count = p_.along.taps.count, out = p_.along.out;
    if (!p_.along.changes) {
      std::copy_n(row, p_.row_out(), to);
    } else if (lanes == 1) {
      SumAlong(row, elements_.data(), weights_.data(), count, to, out);
    } else {
      for (int64_t i = 0; i < out; ++i) {
        for (int64_t t = i; t < count * out; t += 2 * out) {
          AddRows(row + elements_[t] * lanes, row + elements_[t + out] * lanes, weights_[t],
                  weights_[t + out], t > i, to + i * lanes, lanes);
        }
      }
    }
  }

  const ResizeProblem p_;
  const Sources sources_;
  int port_;
  int cores_;
  std::vector<int32_t> elements_;  // Of `along`: the first tap of each result, the second, ...
  std::vector<T> weights_;
};

Status CheckResize(const GroupContext& context) {
  const Node& node = context.node(0);
  const TensorType& x = context.graph.type(node.inputs[0]);
  AG_LET(const int port, context.InputPort(0, 0));
  const Layout in = context.group.inputs[port].layout, out = context.group.outputs[0].layout;
  const Resize resize = ResizeOf(*node.attributes, x.shape);
  if (in != out || (in != Layout::kPlain && !resize.Keeps(2))) {
    return Err(StatusCode::kUnimplemented, "Resize: layouts {} to {}", LayoutName(in),
               LayoutName(out));
  }
  const bool computes = resize.mode != Resize::Mode::kNearest;
  if (!computes || x.dtype == DType::kFloat32 || x.dtype == DType::kFloat64) return OkStatus();
  return Err(StatusCode::kUnimplemented, "Resize: {} is neither f32 nor f64", x.ToString());
}

StatusOr<std::vector<std::string>> ResizeNames(const GroupContext& context) {
  AG_TRY(CheckResize(context));
  return std::vector<std::string>{"rows"};
}

StatusOr<std::unique_ptr<Kernel>> MakeResize(const GroupContext& context, const std::string&,
                                             size_t* done) {
  AG_TRY(CheckResize(context));
  *done = 1;
  const int port = context.InputOf(context.node(0).inputs[0]);
  ResizeProblem problem = ResizeProblemOf(context);
  std::unique_ptr<Kernel> kernel;
  if (problem.moves) {
    kernel = std::make_unique<NearestRows>(std::move(problem), port, context.cores);
  } else if (problem.element_bytes == 8) {
    kernel = std::make_unique<WeightedRows<double>>(std::move(problem), port, context.cores);
  } else {
    kernel = std::make_unique<WeightedRows<float>>(std::move(problem), port, context.cores);
  }
  return kernel;
}

}  // namespace

const Family kResizeFamily = {ResizeNames, MakeResize};

}  // namespace ag::cpu
