// Sums of products for reference kernels, fast enough in double to judge whole networks. Blocks
// of columns are packed so that the inner loops read memory in order and vectorize. Each result is
// summed in ascending k with one rounding per product and one per sum, so it does not depend on the
// number of threads or on the vector width. Pure functions.
#pragma once

#include <cstdint>
#include <functional>

namespace ag {

inline constexpr int64_t kPanelColumns = 8;
inline constexpr int64_t kBlockPanels = 8;
inline constexpr int64_t kBlockColumns = kPanelColumns * kBlockPanels;

// The operands of out[m][j] = sum over k of a[m][k] * b[k][j], for one block of columns.
template <class T>
struct BlockProduct {
  const T* a = nullptr;  // rows x depth, row-major.
  int64_t rows = 0;
  int64_t depth = 0;
  const T* panels = nullptr;  // The matrix b: kBlockPanels panels of depth x kPanelColumns.
  int64_t columns = 0;        // At most kBlockColumns.
  T* out = nullptr;
  int64_t out_stride = 0;  // Between rows of out.
  bool adds = false;       // `out` holds the first term of each sum.
};

// Computes one block.
template <class T>
void Multiply(const BlockProduct<T>& p) {
  for (int64_t row = 0; row < p.rows; ++row) {
    for (int64_t j = 0; j < p.columns; ++j) {
      const int64_t first = j / kPanelColumns * kPanelColumns * p.depth + j % kPanelColumns;
      T& out = p.out[row * p.out_stride + j];
      T sum = p.adds ? out : T{};
      for (int64_t k = 0; k < p.depth; ++k) {
        sum = sum + p.a[row * p.depth + k] * p.panels[first + k * kPanelColumns];
      }
      out = sum;
    }
  }
}
template <>
void Multiply(const BlockProduct<double>& product);

// Returns how many of `threads` threads to use for so many products: starting one takes about 20
// us.
int UsefulThreads(int threads, int64_t products);

// Calls work(begin, end) for disjoint ranges that cover [0, count), on at most `threads` threads.
void ParallelFor(int threads, int64_t count, const std::function<void(int64_t, int64_t)>& work);

}  // namespace ag
