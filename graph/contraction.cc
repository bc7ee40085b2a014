#include "graph/contraction.h"

#include <algorithm>
#include <thread>
#include <vector>

namespace ag {
namespace {

// Four doubles: one AVX register, or two of SSE2. Element-wise, so both give the same bits.
using Lanes = double __attribute__((vector_size(32), aligned(8)));
static_assert(kPanelColumns * sizeof(double) == 2 * sizeof(Lanes));

// Multiplies kRows rows with one panel. The accumulators stay in registers for all of k.
template <int kRows>
[[gnu::always_inline]] inline void MultiplyRows(const double* a, int64_t depth, const double* panel,
                                                int64_t columns, double* out, int64_t out_stride) {
  Lanes sums[kRows][2] = {};
  for (int64_t k = 0; k < depth; ++k) {
    const Lanes low = *reinterpret_cast<const Lanes*>(panel + k * kPanelColumns);
    const Lanes high = *reinterpret_cast<const Lanes*>(panel + k * kPanelColumns + 4);
    for (int r = 0; r < kRows; ++r) {
      const double factor = a[r * depth + k];
      sums[r][0] += factor * low;
      sums[r][1] += factor * high;
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int64_t j = 0; j < columns; ++j) out[r * out_stride + j] = sums[r][j / 4][j % 4];
  }
}

[[gnu::always_inline]] inline void MultiplyBlock(const BlockProduct<double>& p) {
  for (int64_t row = 0; row < p.rows;) {
    const bool four = row + 4 <= p.rows;
    for (int64_t begin = 0; begin < p.columns; begin += kPanelColumns) {
      const double* panel = p.panels + begin * p.depth;
      const int64_t columns = std::min(kPanelColumns, p.columns - begin);
      const double* a = p.a + row * p.depth;
      double* out = p.out + row * p.out_stride + begin;
      if (four) {
        MultiplyRows<4>(a, p.depth, panel, columns, out, p.out_stride);
      } else {
        MultiplyRows<1>(a, p.depth, panel, columns, out, p.out_stride);
      }
    }
    row += four ? 4 : 1;
  }
}

void MultiplyPortable(const BlockProduct<double>& product) { MultiplyBlock(product); }

#if defined(__x86_64__)
[[gnu::target("avx2")]] void MultiplyAvx2(const BlockProduct<double>& product) {
  MultiplyBlock(product);
}
#endif

}  // namespace

template <class T>
void Multiply(const BlockProduct<T>& p) {
  for (int64_t row = 0; row < p.rows; ++row) {
    for (int64_t j = 0; j < p.columns; ++j) {
      const T* panel = p.panels + j / kPanelColumns * kPanelColumns * p.depth + j % kPanelColumns;
      T sum{};
      for (int64_t k = 0; k < p.depth; ++k) {
        sum = sum + p.a[row * p.depth + k] * panel[k * kPanelColumns];
      }
      p.out[row * p.out_stride + j] = sum;
    }
  }
}

// Selects by hand, not by target_clones: their resolvers run before the sanitizers are ready.
template <>
void Multiply(const BlockProduct<double>& product) {
#if defined(__x86_64__)
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
  if (has_avx2) return MultiplyAvx2(product);
#endif
  MultiplyPortable(product);
}

template void Multiply(const BlockProduct<Rational>& product);
template void Multiply(const BlockProduct<Residue>& product);

void ParallelFor(int threads, int64_t count, const std::function<void(int64_t, int64_t)>& work) {
  const int64_t parts = std::min<int64_t>(std::max(threads, 1), count);
  std::vector<std::thread> others;
  for (int64_t part = 1; part < parts; ++part) {
    others.emplace_back(work, count * part / parts, count * (part + 1) / parts);
  }
  if (count > 0) work(0, count / parts);
  for (std::thread& other : others) other.join();
}

}  // namespace ag
