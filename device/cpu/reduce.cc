// Sums, means and maxima over any axes. The input may be blocked by channels when the channels are
// kept.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "device/cpu/block_ops.h"
#include "device/cpu/kernel.h"
#include "device/cpu/lanes.h"
#include "device/cpu/parallel.h"

namespace ag::cpu {
namespace {

// The float loops, vectorized per instruction set.
AG_CLONES float Sum(const float* x, int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += x[i];
  return sum;
}
AG_CLONES float Max(const float* x, int64_t n) {
  float most = x[0];
#pragma omp simd reduction(max : most)
  for (int64_t i = 0; i < n; ++i) most = std::max(most, x[i]);
  return most;
}
AG_CLONES void AddTo(const float* x, float* sum, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) sum[i] += x[i];
}
// Adds `lanes` neighbours of rows that lie so far apart. They stay in registers, in four sums,
// since an addition waits for the one before.
template <int64_t lanes>
AG_INLINE void AddBlocks(const float* x, int64_t apart, int64_t rows, float* sum) {
  using Block = typename Lanes<lanes>::Loose;
  const auto row = [&](int64_t i) -> const Block& {
    return *reinterpret_cast<const Block*>(x + i * apart);
  };
  Block sums[4] = {};
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4) {
    sums[0] += row(i);
    sums[1] += row(i + 1);
    sums[2] += row(i + 2);
    sums[3] += row(i + 3);
  }
  for (; i < rows; ++i) sums[0] += row(i);
  *reinterpret_cast<Block*>(sum) += (sums[0] + sums[1]) + (sums[2] + sums[3]);
}
// Adds rows of n numbers that lie so far apart.
AG_CLONES void AddRowsTo(const float* x, int64_t apart, int64_t rows, float* sum, int64_t n) {
  int64_t lane = 0;
  for (; lane + 16 <= n; lane += 16) AddBlocks<16>(x + lane, apart, rows, sum + lane);
  for (; lane + 8 <= n; lane += 8) AddBlocks<8>(x + lane, apart, rows, sum + lane);
  for (int64_t i = 0; i < rows && lane < n; ++i) {
    for (int64_t k = lane; k < n; ++k) sum[k] += x[i * apart + k];
  }
}
AG_CLONES void RaiseTo(const float* x, float* most, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) most[i] = std::max(most[i], x[i]);
}

struct KeptAxis {
  int64_t size, from, to;
};
struct FoldedAxis {
  int64_t size, from;
};

struct ReduceProblem {
  std::vector<KeptAxis> kept;      // Outermost first; the last may be walked as a vector.
  std::vector<FoldedAxis> folded;  // Outermost first.
  int64_t results = 1, terms = 1;
  bool vector = false;  // The innermost kept axis is dense on both sides.
  KeptAxis lane{1, 0, 0};
  bool is_max = false, is_mean = false;
};

// Folds memory of type T (the float loops above for float).
template <class T>
class Reduce : public Kernel {
 public:
  Reduce(ReduceProblem problem, int port, int cores)
      : p_(std::move(problem)), port_(port), cores_(cores) {}

  Status Run(const RunContext&, Inputs inputs, Outputs outputs) override {
    const T* x = static_cast<const T*>(inputs[port_]);
    T* y = static_cast<T*>(outputs[0]);
    const int64_t work = std::max<int64_t>(p_.terms * p_.lane.size, 1);
    const int64_t grain = std::max<int64_t>(kLightGrain / work, 1);
    ParallelFor(cores_, p_.results, grain, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) {
        int64_t rest = i, from = 0, to = 0;
        for (size_t d = p_.kept.size(); d-- > 0;) {
          const int64_t at = rest % p_.kept[d].size;
          rest /= p_.kept[d].size;
          from += at * p_.kept[d].from;
          to += at * p_.kept[d].to;
        }
        p_.vector ? Many(x + from, y + to) : One(x + from, y + to);
      }
    });
    return OkStatus();
  }

 private:
  // Calls f with the offset of each innermost run of folded elements.
  template <class F>
  void ForRuns(size_t axes, const F& f) const {
    int64_t runs = 1;
    for (size_t d = 0; d < axes; ++d) runs *= p_.folded[d].size;
    for (int64_t i = 0; i < runs; ++i) {
      int64_t rest = i, offset = 0;
      for (size_t d = axes; d-- > 0;) {
        offset += rest % p_.folded[d].size * p_.folded[d].from;
        rest /= p_.folded[d].size;
      }
      f(offset);
    }
  }

  // Sums of integers wrap at 64 bits.
  static constexpr bool kIsInteger = std::is_integral_v<T>;
  using Held = std::conditional_t<kIsInteger, int64_t, double>;
  using Total = std::conditional_t<kIsInteger, uint64_t, double>;

  T Finish(Total total) const {
    if (kIsInteger && p_.terms == 0) return 0;
    const auto value = static_cast<Held>(total);
    return static_cast<T>(p_.is_mean ? value / static_cast<Held>(p_.terms) : value);
  }

  void One(const T* x, T* y) const {
    const FoldedAxis run = p_.folded.empty() ? FoldedAxis{1, 1} : p_.folded.back();
    Total sum = 0;
    Held most = kIsInteger ? static_cast<Held>(std::numeric_limits<T>::min())
                           : -std::numeric_limits<Held>::infinity();
    ForRuns(p_.folded.empty() ? 0 : p_.folded.size() - 1, [&](int64_t offset) {
      if constexpr (std::is_same_v<T, float>) {
        if (run.from == 1 && run.size > 0) {
          if (p_.is_max) most = std::max<double>(most, Max(x + offset, run.size));
          if (!p_.is_max) sum += Sum(x + offset, run.size);
          return;
        }
      }
      for (int64_t i = 0; i < run.size; ++i) {
        const auto value = static_cast<Held>(x[offset + i * run.from]);
        sum += static_cast<Total>(value);
        most = std::max(most, value);
      }
    });
    *y = p_.is_max ? static_cast<T>(most) : Finish(sum);
  }

  // Does the same for `lane.size` neighbouring results at once. Only float has dense lanes.
  void Many(const T* x, T* y) const {
    if constexpr (std::is_same_v<T, float>) {
      constexpr int64_t kWidth = 256;
      constexpr int64_t kNarrow = 64;  // Lanes for which a call for each row costs too much.
      for (int64_t lane = 0; lane < p_.lane.size; lane += kWidth) {
        const int64_t n = std::min(kWidth, p_.lane.size - lane);
        std::fill_n(y + lane, n, p_.is_max ? -std::numeric_limits<float>::infinity() : 0.0f);
        if (p_.is_max || n > kNarrow || p_.folded.empty()) {
          ForRuns(p_.folded.size(), [&](int64_t offset) {
            p_.is_max ? RaiseTo(x + offset + lane, y + lane, n)
                      : AddTo(x + offset + lane, y + lane, n);
          });
        } else {
          const FoldedAxis run = p_.folded.back();
          ForRuns(p_.folded.size() - 1, [&](int64_t offset) {
            AddRowsTo(x + offset + lane, run.from, run.size, y + lane, n);
          });
        }
        for (int64_t i = 0; i < n && p_.is_mean; ++i) y[lane + i] = Finish(y[lane + i]);
      }
    }
  }

  ReduceProblem p_;
  int port_;
  int cores_;
};

Status Refuse(const Node& node, std::string_view why) {
  return Err(StatusCode::kUnimplemented, "{}: {}", Info(node.op).name, why);
}

// Removes kept axes of size 1 and joins neighbouring folded axes that are one run.
void Simplify(ReduceProblem* p, bool is_float) {
  std::erase_if(p->kept, [](const KeptAxis& axis) { return axis.size == 1; });
  std::erase_if(p->folded, [](const FoldedAxis& axis) { return axis.size == 1; });
  for (size_t i = p->folded.size(); i-- > 1;) {
    FoldedAxis& before = p->folded[i - 1];
    if (before.from != p->folded[i].from * p->folded[i].size) continue;
    before = {before.size * p->folded[i].size, p->folded[i].from};
    p->folded.erase(p->folded.begin() + static_cast<std::ptrdiff_t>(i));
  }
  for (size_t i = p->kept.size(); i-- > 1;) {
    KeptAxis &before = p->kept[i - 1], after = p->kept[i];
    if (before.from != after.from * after.size || before.to != after.to * after.size) continue;
    before = {before.size * after.size, after.from, after.to};
    p->kept.erase(p->kept.begin() + static_cast<std::ptrdiff_t>(i));
  }
  for (const FoldedAxis& axis : p->folded) p->terms *= axis.size;
  if (is_float && !p->kept.empty() && p->kept.back().from == 1 && p->kept.back().to == 1) {
    p->vector = true;
    p->lane = p->kept.back();
    p->kept.pop_back();
  }
  for (const KeptAxis& axis : p->kept) p->results *= axis.size;
}

// Returns the axes in memory order, outermost first, as (logical axis, size, stride): five of a
// blocked tensor, else one per axis.
struct MemoryAxis {
  size_t axis;
  int64_t size, stride;
};
std::vector<MemoryAxis> AxesOf(const TensorType& type, Layout layout) {
  std::vector<MemoryAxis> axes;
  const int64_t block = BlockOf(layout);
  if (block == 1) {
    const std::vector<int64_t> strides = DenseStrides(type.shape, layout);
    for (size_t d = 0; d < strides.size(); ++d) axes.push_back({d, type.shape[d], strides[d]});
    if (layout == Layout::kChannelsLast)
      std::rotate(axes.begin() + 1, axes.begin() + 2, axes.end());
    return axes;
  }
  const int64_t w = block, h = w * type.shape[3], plane = h * type.shape[2];
  const int64_t blocks = (type.shape[1] + block - 1) / block;
  return {{0, type.shape[0], blocks * plane},
          {1, blocks, plane},
          {2, type.shape[2], h},
          {3, type.shape[3], w},
          {1, block, 1}};
}

StatusOr<ReduceProblem> ReduceProblemOf(const GroupContext& context) {
  const Node& node = context.node(0);
  AG_LET(const int port, context.InputPort(0, 0));
  const Layout in = context.group.inputs[port].layout, out = context.group.outputs[0].layout;
  const TensorType& type = context.graph.type(node.inputs[0]);
  const Ints& axes = node.IntList("axes");
  const auto folds = [&](size_t axis) {
    return std::find(axes.begin(), axes.end(), static_cast<int64_t>(axis)) != axes.end();
  };
  const bool keep = node.Int("keepdims") != 0;
  if (out == Layout::kChannelsLast && !keep) return Refuse(node, "channels_last needs keepdims");
  if (BlockOf(in) > 1 && (folds(1) || type.dtype != DType::kFloat32)) {
    return Refuse(node, "blocked channels can only be kept");
  }
  if (BlockOf(out) > 1 && (BlockOf(in) != BlockOf(out) || !keep)) {
    return Refuse(node, "blocked output needs the same input and keepdims");
  }
  if (BlockOf(in) > 1 && out == Layout::kPlain && type.shape[1] % BlockOf(in) != 0) {
    return Refuse(node, "plain output of padded channels");
  }
  // The output's strides as if the folded axes were kept with size 1.
  TensorType whole = type;
  for (const int64_t axis : axes) whole.shape[axis] = 1;
  const std::vector<MemoryAxis> targets = AxesOf(whole, out);
  ReduceProblem p{.is_max = node.op == OpKind::kReduceMax,
                  .is_mean = node.op == OpKind::kReduceMean};
  bool lane_seen = false;
  for (const MemoryAxis& axis : AxesOf(type, in)) {
    if (folds(axis.axis)) {
      p.folded.push_back({axis.size, axis.stride});
      continue;
    }
    const bool lane = BlockOf(in) > 1 && axis.axis == 1 && std::exchange(lane_seen, axis.axis == 1);
    int64_t to = std::ranges::find(targets, axis.axis, &MemoryAxis::axis)->stride;
    if (BlockOf(in) > 1 && axis.axis == 1) {
      const int64_t channel = BlockOf(out) > 1 ? 1 : targets[1].stride;
      to = lane ? channel : (BlockOf(out) > 1 ? targets[1].stride : channel * BlockOf(in));
    }
    p.kept.push_back({axis.size, axis.stride, to});
  }
  Simplify(&p, type.dtype == DType::kFloat32);
  return p;
}

StatusOr<std::vector<std::string>> ReduceNames(const GroupContext& context) {
  AG_TRY(ReduceProblemOf(context));
  const DType dtype = context.node(0).outputs[0].dtype;
  if (dtype != DType::kFloat32 && dtype != DType::kFloat64 && dtype != DType::kInt64 &&
      dtype != DType::kInt32) {
    return Refuse(context.node(0), DTypeName(dtype));
  }
  return std::vector<std::string>{"loops"};
}

StatusOr<std::unique_ptr<Kernel>> MakeReduce(const GroupContext& context, const std::string&,
                                             size_t* done) {
  AG_LET(ReduceProblem p, ReduceProblemOf(context));
  *done = 1;
  const int port = context.InputOf(context.node(0).inputs[0]);
  std::unique_ptr<Kernel> kernel;
  switch (context.node(0).outputs[0].dtype) {
    case DType::kFloat32:
      return std::make_unique<Reduce<float>>(std::move(p), port, context.cores);
    case DType::kFloat64:
      return std::make_unique<Reduce<double>>(std::move(p), port, context.cores);
    case DType::kInt64:
      return std::make_unique<Reduce<int64_t>>(std::move(p), port, context.cores);
    default:
      return std::make_unique<Reduce<int32_t>>(std::move(p), port, context.cores);
  }
}

}  // namespace

const Family kReduceFamily = {ReduceNames, MakeReduce};

}  // namespace ag::cpu
