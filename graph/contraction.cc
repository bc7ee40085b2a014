#include "graph/contraction.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/thread_pool.h"

namespace ag {
namespace {

// A panel's row: one register of AVX-512, two of AVX2, four of SSE2. Element-wise, so all give the
// same bits.
using Lanes = double __attribute__((vector_size(64), aligned(8)));
static_assert(kPanelColumns * sizeof(double) == sizeof(Lanes));

// A part of the depth: with it a panel and its rows stay in the first cache.
constexpr int64_t kPartDepth = 256;

// Adds the products of kRows rows with `depth` rows of one panel to `out`, or sets `out` for the
// first part of sums that begin at zero. The accumulators stay in registers for the part.
template <int kRows>
[[gnu::always_inline]] inline void MultiplyRows(const BlockProduct<double>& p, const double* a,
                                                const double* panel, int64_t depth, bool is_first,
                                                int64_t columns, double* out) {
  Lanes sums[kRows] = {};
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    if (!is_first) std::memcpy(&sums[r], out + r * p.out_stride, columns * sizeof(double));
  }
  for (int64_t k = 0; k < depth; ++k) {
    Lanes row;  // Panels need not be aligned.
    std::memcpy(&row, panel + k * kPanelColumns, sizeof row);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) sums[r] += a[r * p.depth + k] * row;
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    std::memcpy(out + r * p.out_stride, &sums[r], columns * sizeof(double));
  }
}

// Multiplies kRows rows at a time, then single ones, for one part of the depth after the other.
template <int kRows>
[[gnu::always_inline]] inline void MultiplyBlock(const BlockProduct<double>& p) {
  for (int64_t first = 0; first == 0 || first < p.depth; first += kPartDepth) {
    const int64_t depth = std::min(kPartDepth, p.depth - first);
    const bool is_first = first == 0 && !p.adds;
    for (int64_t row = 0; row < p.rows;) {
      const bool many = row + kRows <= p.rows;
      const double* a = p.a + row * p.depth + first;
      for (int64_t begin = 0; begin < p.columns; begin += kPanelColumns) {
        const double* panel = p.panels + begin * p.depth + first * kPanelColumns;
        const int64_t columns = std::min(kPanelColumns, p.columns - begin);
        double* out = p.out + row * p.out_stride + begin;
        if (many) {
          MultiplyRows<kRows>(p, a, panel, depth, is_first, columns, out);
        } else {
          MultiplyRows<1>(p, a, panel, depth, is_first, columns, out);
        }
      }
      row += many ? kRows : 1;
    }
  }
}

void MultiplyPortable(const BlockProduct<double>& product) { MultiplyBlock<4>(product); }

#if defined(__x86_64__)
[[gnu::target("avx2")]] void MultiplyAvx2(const BlockProduct<double>& product) {
  MultiplyBlock<4>(product);
}

// 8 accumulators hide the latency of an addition: 4 cycles on each of two units.
[[gnu::target("avx512f")]] void MultiplyAvx512(const BlockProduct<double>& product) {
  MultiplyBlock<8>(product);
}
#endif

}  // namespace

// Selects by hand, not by target_clones: their resolvers run before the sanitizers are ready.
template <>
void Multiply(const BlockProduct<double>& product) {
#if defined(__x86_64__)
  static const bool has_avx512 = __builtin_cpu_supports("avx512f") != 0;
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
  if (has_avx512) return MultiplyAvx512(product);
  if (has_avx2) return MultiplyAvx2(product);
#endif
  MultiplyPortable(product);
}

int UsefulThreads(int threads, int64_t products) {
  constexpr int64_t kProductsPerThread = 1 << 18;
  return static_cast<int>(
      std::clamp<int64_t>(products / kProductsPerThread, 1, std::max(threads, 1)));
}

void ParallelFor(int threads, int64_t count, const std::function<void(int64_t, int64_t)>& work) {
  const int64_t parts = std::min<int64_t>(std::max(threads, 1), count);
  ThreadPool(static_cast<int>(parts)).Each(static_cast<int>(parts), [&](int part, int) {
    work(count * part / parts, count * (part + 1) / parts);
  });
}

}  // namespace ag
