#include "device/cpu/product_loops.h"

#include <algorithm>
#include <utility>

#include "device/cpu/fast_math.h"
#include "device/cpu/lanes.h"

namespace ag::cpu {
namespace {

template <int64_t lanes, int kRows, int kVectors>
using Sums = typename Lanes<lanes>::Vector[kRows][kVectors];

// Where the rows of a tile begin. Three pointers, each for three rows, take fewer registers than
// one for each row.
template <int kRows>
struct Rows {
  AG_INLINE Rows(const float* first, int64_t step) : step(step) {
#pragma GCC unroll 3
    for (int i = 0; i < 3; ++i) group[i] = first + 3 * i * step;
  }
  AG_INLINE const float& At(int row, int64_t i) const { return group[row / 3][row % 3 * step + i]; }
  const float* group[3];
  int64_t step;
};

// Number i of each row times one row of the weights.
template <int64_t lanes, int kRows, int kVectors, class Left>
AG_INLINE void AddProducts(const Left& left, const float* right, int64_t right_step,
                           Sums<lanes, kRows, kVectors>& sum) {
  using V = typename Lanes<lanes>::Vector;
  V b[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) b[v] = *reinterpret_cast<const V*>(right + v * right_step);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sum[r][v] += left(r) * b[v];
  }
}

template <int64_t lanes, int kRows, int kVectors>
AG_INLINE void Multiply(const ProductTile& tile, Sums<lanes, kRows, kVectors>& sum) {
  using V = typename Lanes<lanes>::Vector;
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sum[r][v] = V{};
  }
  const float* right = tile.right;
  const int64_t right_step = tile.right_step, k = tile.k, piece = tile.piece;
  const int64_t row_step = tile.row_step, ahead_bytes = tile.ahead_lines * kProductLineBytes;
  const bool is_packed = row_step == 0;
  // From a piece to the next one, and from a line of the next rows to the next one.
  const int64_t left_step = is_packed ? piece * kRows : tile.piece_step;
  const int64_t line_step = is_packed ? piece : row_step;
  const float *left = tile.left, *next = tile.next_left;
  const char* ahead = tile.ahead;
  for (int64_t begin = 0; begin < k; begin += piece, left += left_step, next += left_step) {
    const int64_t count = std::min(piece, k - begin);
    for (const char* const end = ahead + ahead_bytes; ahead < end; ahead += kProductLineBytes) {
      __builtin_prefetch(ahead, /*rw=*/0, /*locality=*/2);
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      __builtin_prefetch(next + r * line_step, /*rw=*/0, /*locality=*/3);
    }
    if (is_packed) {
      const float* at = left;
#pragma GCC unroll 2
      for (int64_t i = 0; i < count; ++i, at += kRows, right += lanes) {
        AddProducts<lanes, kRows, kVectors>([&](int r) AG_INLINE_LAMBDA { return at[r]; }, right,
                                            right_step, sum);
      }
    } else {
      const Rows<kRows> rows(left, row_step);
#pragma GCC unroll 2
      for (int64_t i = 0; i < count; ++i, right += lanes) {
        AddProducts<lanes, kRows, kVectors>([&](int r) AG_INLINE_LAMBDA { return rows.At(r, i); },
                                            right, right_step, sum);
      }
    }
  }
  if (tile.start == nullptr) return;
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      V start;
      LoadLanes<lanes>(tile.start + (r * kVectors + v) * lanes, &start);
      sum[r][v] += start;
    }
  }
}

template <int64_t lanes, int kRows, int kVectors>
AG_INLINE void Store(const Sums<lanes, kRows, kVectors>& sum, float* sums) {
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      StoreLanes<lanes>(sum[r][v], sums + (r * kVectors + v) * lanes);
    }
  }
}

template <int64_t lanes, int kRows, int kVectors>
AG_INLINE void Finish(const Sums<lanes, kRows, kVectors>& sum, const ProductTail& tail) {
  using V = typename Lanes<lanes>::Vector;
  const V low = V{} + tail.ops.bounds.low, high = V{} + tail.ops.bounds.high;
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    V bias{};
    if (tail.bias != nullptr) LoadLanes<lanes>(tail.bias + v * lanes, &bias);
    const int64_t at = v * tail.to_step;
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      V value = sum[r][v] + bias;
      if (tail.residual != nullptr) {
        V residual;
        LoadLanes<lanes>(tail.residual[r] + at, &residual);
        value += residual;
      }
      ApplyOps<lanes>(low, high, tail.ops.is_hard_swish, &value);
      StoreLanes<lanes>(value, tail.to[r] + at);
    }
  }
}

template <int64_t lanes>
AG_INLINE void Scale(const float* weights, const float* factors, int64_t vectors, int64_t k,
                     float* to) {
  using V = typename Lanes<lanes>::Vector;
  for (int64_t v = 0; v < vectors; ++v) {
    for (int64_t i = 0; i < k; ++i, weights += lanes, to += lanes) {
      *reinterpret_cast<V*>(to) = *reinterpret_cast<const V*>(weights) * factors[i];
    }
  }
}

// A function for each size of a tile, so that each has the registers to itself.
#define AG_PRODUCT_LOOPS(isa, lanes, most_rows, most_vectors, mark)                            \
  template <int kRows, int kVectors>                                                           \
  mark void Run##isa(const ProductTile& tile, float* sums, const ProductTail* tail) {          \
    Sums<lanes, kRows, kVectors> sum;                                                          \
    Multiply<lanes, kRows, kVectors>(tile, sum);                                               \
    if (tail == nullptr) return Store<lanes, kRows, kVectors>(sum, sums);                      \
    Finish<lanes, kRows, kVectors>(sum, *tail);                                                \
  }                                                                                            \
  mark void Scale##isa(const float* weights, const float* factors, int64_t vectors, int64_t k, \
                       float* to) {                                                            \
    Scale<lanes>(weights, factors, vectors, k, to);                                            \
  }                                                                                            \
  template <size_t... size>                                                                    \
  constexpr ProductLoops Loops##isa(std::index_sequence<size...>) {                            \
    return {lanes,                                                                             \
            most_rows,                                                                         \
            most_vectors,                                                                      \
            {Run##isa<size / most_vectors + 1, size % most_vectors + 1>...},                   \
            Scale##isa};                                                                       \
  }                                                                                            \
  constexpr ProductLoops k##isa = Loops##isa(std::make_index_sequence<most_rows * most_vectors>());

AG_PRODUCT_LOOPS(Avx512, 16, 8, 3, AG_AVX512)
AG_PRODUCT_LOOPS(Avx2, 8, 6, 2, AG_AVX2)
AG_PRODUCT_LOOPS(Sse, 4, 4, 2, )

// Four rows by four numbers.
using Four = Lanes<4>::Vector;
AG_INLINE void PackFour(const float* const* rows, int64_t from, int64_t count, float* to) {
  Four a, b, c, d;
  LoadLanes<4>(rows[0] + from, &a);
  LoadLanes<4>(rows[1] + from, &b);
  LoadLanes<4>(rows[2] + from, &c);
  LoadLanes<4>(rows[3] + from, &d);
  const Four ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  const Four ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Four cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const Four cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  StoreLanes<4>(__builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5), to);
  StoreLanes<4>(__builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7), to + count);
  StoreLanes<4>(__builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5), to + 2 * count);
  StoreLanes<4>(__builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7), to + 3 * count);
}

}  // namespace

const ProductLoops& ProductLoopsFor(std::string_view isa) {
  return ForInstructionSet(isa, kAvx512, kAvx2, kSse);
}

void PackProductRows(const ProductRows& rows, int64_t block, int64_t plane, int64_t n, float* to) {
  const int64_t count = rows.count;
  const bool is_inside = std::find(rows.first, rows.first + count, nullptr) == rows.first + count;
  for (int64_t begin = 0; begin < n; begin += block) {
    const int64_t end = std::min(begin + block, n),
                  fours = is_inside ? begin + (end - begin) / 4 * 4 : begin;
    const int64_t shift = begin / block * plane - begin;  // From a number to where it lies.
    for (int64_t i = begin; i < fours; i += 4) {
      if ((i - begin) % kProductPiece == 0) {
        for (int64_t r = count; r < rows.known; ++r) {
          __builtin_prefetch(rows.first[r] + i + shift, /*rw=*/0, /*locality=*/3);
        }
      }
      int64_t r = 0;
      for (; r + 4 <= count; r += 4) PackFour(rows.first + r, i + shift, count, to + i * count + r);
      for (; r < count; ++r) {
        for (int64_t j = i; j < i + 4; ++j) to[j * count + r] = rows.first[r][j + shift];
      }
    }
    for (int64_t i = fours; i < end; ++i) {
      for (int64_t r = 0; r < count; ++r) {
        to[i * count + r] = rows.first[r] == nullptr ? 0 : rows.first[r][i + shift];
      }
    }
  }
}

}  // namespace ag::cpu
