#include "device/cpu/blocked_copy.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>
#include <vector>

#include "graph/half.h"

namespace ag::cpu {
namespace {

constexpr int kRankMax = 6;

// One loop of the copy, outermost first: so many steps, each so far in both memories. `dim` and
// `step` tell which coordinate it moves, so that what is padding is seen.
struct CopyLoop {
  int64_t count = 1, from_stride = 0, to_stride = 0;
  int dim = 0;
  int64_t step = 1;
};

bool IsPlainKind(const dnnl_memory_desc_t& desc) {
  return desc.format_kind == dnnl_blocked && desc.extra.flags == 0 && desc.ndims <= kRankMax;
}

// Returns the value as memory of the result holds it.
template <class To>
To Converted(float value) {
  if constexpr (std::is_same_v<To, float>) {
    return value;
  } else {
    return FloatToBFloat16(value);
  }
}

// To: float, or uint16_t for bf16.
template <class To>
class Copier {
 public:
  Copier(const dnnl_memory_desc_t& wanted, const dnnl_memory_desc_t& given) : wanted_(wanted) {
    const dnnl_blocking_desc_t& blocks = wanted.format_desc.blocking;
    const dnnl_dims_t& from_strides = given.format_desc.blocking.strides;
    std::array<int64_t, kRankMax> block;
    block.fill(1);
    for (int i = 0; i < blocks.inner_nblks; ++i)
      block[blocks.inner_idxs[i]] *= blocks.inner_blks[i];
    for (int dim = 0; dim < wanted.ndims; ++dim) {
      loops_.push_back({.count = wanted.padded_dims[dim] / block[dim],
                        .from_stride = from_strides[dim] * block[dim],
                        .to_stride = blocks.strides[dim],
                        .dim = dim,
                        .step = block[dim]});
    }
    // As the result lies, so that it is written once from its begin to its end.
    std::ranges::stable_sort(loops_, std::greater<>(), &CopyLoop::to_stride);
    int64_t to_stride = 1;
    std::vector<CopyLoop> inner;
    std::array<int64_t, kRankMax> step;
    step.fill(1);
    for (int i = blocks.inner_nblks; i-- > 0;) {
      const int dim = static_cast<int>(blocks.inner_idxs[i]);
      inner.push_back({.count = blocks.inner_blks[i],
                       .from_stride = from_strides[dim] * step[dim],
                       .to_stride = to_stride,
                       .dim = dim,
                       .step = step[dim]});
      to_stride *= blocks.inner_blks[i];
      step[dim] *= blocks.inner_blks[i];
    }
    loops_.insert(loops_.end(), inner.rbegin(), inner.rend());
    std::erase_if(loops_, [](const CopyLoop& loop) { return loop.count == 1; });
    // Two loops of which one goes on where the other ends are one.
    for (size_t i = loops_.size(); i-- > 1;) {
      CopyLoop &outer = loops_[i - 1], &next = loops_[i];
      const bool is_one = outer.dim == next.dim && outer.step == next.step * next.count &&
                          outer.from_stride == next.from_stride * next.count &&
                          outer.to_stride == next.to_stride * next.count;
      if (!is_one) continue;
      outer = {.count = outer.count * next.count,
               .from_stride = next.from_stride,
               .to_stride = next.to_stride,
               .dim = next.dim,
               .step = next.step};
      loops_.erase(loops_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  void Run(const float* from, To* to) {
    at_.fill(0);
    Loop(0, from, to);
  }

 private:
  // How many steps of the loop stay inside of the tensor.
  int64_t Inside(const CopyLoop& loop) const {
    const int64_t left = wanted_.dims[loop.dim] - at_[loop.dim];
    return std::clamp<int64_t>((left + loop.step - 1) / loop.step, 0, loop.count);
  }

  void Loop(size_t depth, const float* from, To* to) {
    if (depth == loops_.size()) {
      *to = Converted<To>(*from);
      return;
    }
    const CopyLoop& loop = loops_[depth];
    const int64_t inside = Inside(loop);
    if (depth + 1 == loops_.size()) {
      Innermost(loop, inside, from, to);
      return;
    }
    if (depth + 2 == loops_.size() && Square(loop, inside, loops_[depth + 1], from, to)) return;
    const int64_t before = at_[loop.dim];
    for (int64_t i = 0; i < inside; ++i) {
      Loop(depth + 1, from + i * loop.from_stride, to + i * loop.to_stride);
      at_[loop.dim] += loop.step;
    }
    at_[loop.dim] = before;
    // Behind the tensor's end everything inside of this loop is padding.
    for (int64_t i = inside; i < loop.count; ++i) Clear(depth + 1, to + i * loop.to_stride);
  }

  static void Innermost(const CopyLoop& loop, int64_t inside, const float* from, To* to) {
    if (std::is_same_v<To, float> && loop.from_stride == 1 && loop.to_stride == 1) {
      std::memcpy(to, from, static_cast<size_t>(inside) * sizeof(float));
    } else {
      for (int64_t i = 0; i < inside; ++i) {
        to[i * loop.to_stride] = Converted<To>(from[i * loop.from_stride]);
      }
    }
    for (int64_t i = inside; i < loop.count; ++i) to[i * loop.to_stride] = 0;
  }

  // The two innermost loops where the outer one of them reads what lies together: 16 lines are read
  // once and stay in the first cache.
  bool Square(const CopyLoop& outer, int64_t inside, const CopyLoop& inner, const float* from,
              To* to) {
    constexpr int64_t kSide = 16;
    if (outer.from_stride != 1 || inner.to_stride != 1 || inner.count != kSide ||
        inside != outer.count || Inside(inner) != kSide || outer.dim == inner.dim) {
      return false;
    }
    for (int64_t i = 0; i < outer.count; ++i) {
      To* const row = to + i * outer.to_stride;
      const float* const column = from + i;
      for (int64_t k = 0; k < kSide; ++k) row[k] = Converted<To>(column[k * inner.from_stride]);
    }
    return true;
  }

  void Clear(size_t depth, To* to) {
    if (depth == loops_.size()) {
      *to = 0;
      return;
    }
    const CopyLoop& loop = loops_[depth];
    for (int64_t i = 0; i < loop.count; ++i) Clear(depth + 1, to + i * loop.to_stride);
  }

  const dnnl_memory_desc_t& wanted_;
  std::vector<CopyLoop> loops_;
  std::array<int64_t, kRankMax> at_{};  // The coordinates of the loops around.
};

}  // namespace

bool CopyToBlocks(const Desc& wanted, const Desc& given, const float* from, void* to) {
  const dnnl_memory_desc_t &w = wanted.data, &g = given.data;
  if (!IsPlainKind(w) || w.offset0 != 0 || !IsPlainKind(g) || g.data_type != dnnl_f32 ||
      g.format_desc.blocking.inner_nblks != 0 || w.ndims != g.ndims ||
      !std::equal(w.dims, w.dims + w.ndims, g.dims)) {
    return false;
  }
  from += g.offset0;
  if (w.data_type == dnnl_f32) {
    Copier<float>(w, g).Run(from, static_cast<float*>(to));
  } else if (w.data_type == dnnl_bf16) {
    Copier<uint16_t>(w, g).Run(from, static_cast<uint16_t*>(to));
  }
  return w.data_type == dnnl_f32 || w.data_type == dnnl_bf16;
}

}  // namespace ag::cpu
