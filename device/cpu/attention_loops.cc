#include "device/cpu/attention_loops.h"

#include <algorithm>

#include "device/cpu/attention_lanes.h"

namespace ag::cpu {
namespace {

// to[c * step + i] = from[i][c] * scale for `lanes` rows, of which those from `rows` on are
// anything finite that the matrix holds, or zero.
template <int64_t lanes>
AG_INLINE void Pack(const StridedMatrix<const float>& from, int64_t rows, int64_t columns,
                    float scale, float* to, int64_t step) {
  using S = Simd<lanes>;
  if (rows < lanes) {
    for (int64_t c = 0; c < columns; ++c) *S::At(to + c * step) = typename S::V{};
  }
  ForColumns<lanes>(
      from, rows, columns,
      [&](int64_t c, typename S::V(&square)[lanes]) AG_INLINE_LAMBDA {
#pragma GCC unroll 16
        for (int64_t j = 0; j < lanes; ++j) *S::At(to + (c + j) * step) = square[j] * scale;
      },
      [&](int64_t c, int64_t i, float value)
          AG_INLINE_LAMBDA { to[c * step + i] = value * scale; });
}

// out[r * step] for kRows rows = init + sum over i of a[r * a_row + i * a_step] * b[i * step].
template <int64_t lanes, int kRows, int kVectors>
AG_INLINE void Product(const float* a, int64_t a_row, int64_t a_step, float* b, int64_t count,
                       const typename Lanes<lanes>::Vector* factors, float* out) {
  using S = Simd<lanes>;
  using V = typename S::V;
  constexpr int64_t kStep = lanes * kVectors;
  V sum[kRows][kVectors] = {};
  if (factors != nullptr) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        sum[r][v] = *S::At(out + r * kStep + v * lanes) * factors[v];
      }
    }
  }
  for (int64_t i = 0; i < count; ++i, a += a_step, b += kStep) {
    V row[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) row[v] = *S::At(b + v * lanes);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sum[r][v] += a[r * a_row] * row[v];
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) *S::At(out + r * kStep + v * lanes) = sum[r][v];
  }
}

// Product for any number of rows up to kRows.
template <int64_t lanes, int kRows, int kVectors>
AG_INLINE void ProductOfRows(int64_t rows, const float* a, int64_t a_row, int64_t a_step, float* b,
                             int64_t count, const typename Lanes<lanes>::Vector* factors,
                             float* out) {
  if constexpr (kRows > 0) {
    if (rows == kRows) {
      return Product<lanes, kRows, kVectors>(a, a_row, a_step, b, count, factors, out);
    }
    ProductOfRows<lanes, kRows - 1, kVectors>(rows, a, a_row, a_step, b, count, factors, out);
  }
}

// out[rows][tile] = factors * out + a[rows][count] . b[count][tile]; without factors out is not
// read. The rows are computed in parts of about the same size.
template <int64_t lanes, int kRows, int kVectors>
AG_INLINE void Products(int64_t rows, const float* a, int64_t a_row, int64_t a_step, float* b,
                        int64_t count, const typename Lanes<lanes>::Vector* factors, float* out) {
  const int64_t parts = (rows + kRows - 1) / kRows;
  for (int64_t p = 0; p < parts; ++p) {
    const int64_t begin = rows * p / parts, end = rows * (p + 1) / parts;
    ProductOfRows<lanes, kRows, kVectors>(end - begin, a + begin * a_row, a_row, a_step, b, count,
                                          factors, out + begin * lanes * kVectors);
  }
}

template <int64_t lanes, int kRows, int kVectors>
AG_INLINE void RunTile(const AttentionTile<float>& tile) {
  constexpr int64_t kStep = lanes * kVectors;
  float* queries = tile.scratch;
  float* results = queries + tile.depth * kStep;
  float* scores = results + tile.width * kStep;
  for (int v = 0; v < kVectors; ++v) {
    const int64_t rows = std::min(lanes, tile.queries - v * lanes);
    const StridedMatrix<const float> from{tile.q.data + v * lanes * tile.q.row, tile.q.row,
                                          tile.q.column};
    Pack<lanes>(from, rows, tile.depth, tile.scale, queries + v * lanes, kStep);
  }
  Running<lanes, kVectors> at{};
  const int64_t blocks = (tile.keys + tile.block - 1) / tile.block;
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t first = tile.keys * b / blocks, keys = tile.keys * (b + 1) / blocks - first;
    Products<lanes, kRows, kVectors>(keys, tile.k.data + first * tile.k.row, tile.k.row,
                                     tile.k.column, queries, tile.depth, nullptr, scores);
    for (const ScoreStep& step : tile.steps) {
      RunStep<lanes, kVectors>(step, first, tile.queries, keys, scores);
    }
    ExpOfBlock<lanes, kVectors>(keys, b == 0, scores, &at);
    Products<lanes, kRows, kVectors>(tile.width, tile.v.data + first * tile.v.row, tile.v.column,
                                     tile.v.row, scores, keys, b == 0 ? nullptr : at.factors,
                                     results);
  }
  Store<lanes, kVectors>(tile.out, tile.queries, tile.width, at, results);
}

// Takes no more vectors than the queries need.
template <int64_t lanes, int kRows, int kVectors>
AG_INLINE void RunFew(const AttentionTile<float>& tile) {
  if constexpr (kVectors > 1) {
    if (tile.queries <= lanes * (kVectors - 1)) return RunFew<lanes, kRows, kVectors - 1>(tile);
  }
  RunTile<lanes, kRows, kVectors>(tile);
}

#define AG_ATTENTION_LOOPS(name, lanes, rows, vectors, mark)                                    \
  mark void Run##name(const AttentionTile<float>& tile) { RunFew<lanes, rows, vectors>(tile); } \
  constexpr AttentionLoops<float> k##name{lanes, rows, vectors, Run##name};

// rows * vectors sums, `vectors` of the other factor and one broadcast number fit the registers:
// 32 with AVX-512, else 16.
AG_ATTENTION_LOOPS(EvenAvx512, 16, 8, 3, AG_AVX512)
AG_ATTENTION_LOOPS(TallAvx512, 16, 12, 2, AG_AVX512)
AG_ATTENTION_LOOPS(WideAvx512, 16, 6, 4, AG_AVX512)
AG_ATTENTION_LOOPS(NarrowAvx512, 8, 6, 4, AG_AVX512)
AG_ATTENTION_LOOPS(EvenAvx2, 8, 4, 3, AG_AVX2)
AG_ATTENTION_LOOPS(TallAvx2, 8, 6, 2, AG_AVX2)
AG_ATTENTION_LOOPS(WideAvx2, 8, 2, 4, AG_AVX2)
AG_ATTENTION_LOOPS(NarrowAvx2, 4, 4, 2, AG_AVX2)
// One tile for all forms: each adds 50 KB to every program.
AG_ATTENTION_LOOPS(Sse, 4, 4, 2, )

}  // namespace

const AttentionLoops<float>& AttentionLoopsFor(std::string_view isa, std::string_view form) {
  if (form == "tall") return ForInstructionSet(isa, kTallAvx512, kTallAvx2, kSse);
  if (form == "narrow") return ForInstructionSet(isa, kNarrowAvx512, kNarrowAvx2, kSse);
  if (form == "wide") return ForInstructionSet(isa, kWideAvx512, kWideAvx2, kSse);
  return ForInstructionSet(isa, kEvenAvx512, kEvenAvx2, kSse);
}

}  // namespace ag::cpu
