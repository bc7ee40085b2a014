// The loops of attention on bf16: as those on f32 (attention_loops.cc), but a factor of a product
// has two elements side by side in a lane, of neighbouring columns of queries and keys or of
// neighbouring keys, and an instruction adds both their products to a sum in f32.
#include <algorithm>

#include "device/cpu/attention_lanes.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ag::cpu {

#if defined(__x86_64__)

namespace {

#define AG_AVX512_BF16 __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx512bf16,fma")))

constexpr int64_t kLanes = 16;
using Sum = Lanes<kLanes>::Vector;
using Bits = Lanes<kLanes>::Bits;
using Halves = Lanes<kLanes>::Halves;
using S = Simd<kLanes>;
// Two elements of bf16, anywhere in memory.
using Pair = int32_t __attribute__((may_alias, aligned(2)));

// A factor of which single pairs are read: pair i of row r begins r * row + i * step elements
// behind `data`.
struct Pairs {
  const uint16_t* data = nullptr;
  int64_t row = 0, step = 0;
};

// out[r * tile] for kRows rows = factors * out + scale * sum over i of a's pair i of row r times
// b[i * tile]; without factors out is not read.
template <int kRows, int kVectors>
AG_AVX512_BF16 AG_INLINE void Product(const Pairs& a, const float* b, int64_t count, float scale,
                                      const Sum* factors, float* out) {
  constexpr int64_t kStep = kLanes * kVectors;
  __m512 sum[kRows][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sum[r][v] = _mm512_setzero_ps();
  }
  for (int64_t i = 0; i < count; ++i, b += kStep) {
    __m512bh row[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      row[v] = reinterpret_cast<__m512bh>(_mm512_loadu_si512(b + v * kLanes));
    }
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const auto* pair = reinterpret_cast<const Pair*>(a.data + r * a.row + i * a.step);
      const auto each = reinterpret_cast<__m512bh>(_mm512_set1_epi32(*pair));
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sum[r][v] = _mm512_dpbf16_ps(sum[r][v], each, row[v]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      Sum* to = S::At(out + r * kStep + v * kLanes);
      const auto product = reinterpret_cast<Sum>(sum[r][v]);
      *to = factors == nullptr ? product * scale : *to * factors[v] + product;
    }
  }
}

// Product for any number of rows up to kRows.
template <int kRows, int kVectors>
AG_AVX512_BF16 AG_INLINE void ProductOfRows(int64_t rows, const Pairs& a, const float* b,
                                            int64_t count, float scale, const Sum* factors,
                                            float* out) {
  if constexpr (kRows > 0) {
    if (rows == kRows) return Product<kRows, kVectors>(a, b, count, scale, factors, out);
    ProductOfRows<kRows - 1, kVectors>(rows, a, b, count, scale, factors, out);
  }
}

// Product for any number of rows, which are computed in parts of about the same size.
template <int kRows, int kVectors>
AG_AVX512_BF16 AG_INLINE void Products(int64_t rows, const Pairs& a, const float* b, int64_t count,
                                       float scale, const Sum* factors, float* out) {
  const int64_t parts = (rows + kRows - 1) / kRows;
  for (int64_t p = 0; p < parts; ++p) {
    const int64_t begin = rows * p / parts, end = rows * (p + 1) / parts;
    ProductOfRows<kRows, kVectors>(end - begin, {a.data + begin * a.row, a.row, a.step}, b, count,
                                   scale, factors, out + begin * kLanes * kVectors);
  }
}

// to[c * step + i] = the pair of columns 2 * c and 2 * c + 1 of row i, for 16 rows, of which those
// from `rows` on are zero or other rows again.
AG_AVX512_BF16 AG_INLINE void PackQueries(const StridedMatrix<const uint16_t>& from, int64_t rows,
                                          int64_t pairs, float* to, int64_t step) {
  if (rows < kLanes) {
    for (int64_t c = 0; c < pairs; ++c) *S::At(to + c * step) = Sum{};
  }
  const StridedMatrix<const float> as_pairs{reinterpret_cast<const float*>(from.data), from.row / 2,
                                            1};
  ForColumns<kLanes>(
      as_pairs, rows, pairs,
      [&](int64_t c, Sum(&square)[kLanes]) AG_INLINE_LAMBDA {
#pragma GCC unroll 16
        for (int64_t j = 0; j < kLanes; ++j) *S::At(to + (c + j) * step) = square[j];
      },
      [&](int64_t c, int64_t i, float pair) AG_INLINE_LAMBDA { to[c * step + i] = pair; });
}

// to[p * width + c] = column c of keys 2 * p and 2 * p + 1; behind the last key there is zero.
AG_AVX512_BF16 AG_INLINE void PackValues(const StridedMatrix<const uint16_t>& from, int64_t keys,
                                         int64_t width, uint32_t* to) {
  for (int64_t key = 0; key < keys; key += 2, to += width) {
    const uint16_t* low = from.data + key * from.row;
    const uint16_t* high = key + 1 < keys ? low + from.row : nullptr;
    int64_t c = 0;
    if (from.column == 1 && high != nullptr) {
      for (; c + kLanes <= width; c += kLanes) {
        const auto& first = *reinterpret_cast<const Halves*>(low + c);
        const auto& second = *reinterpret_cast<const Halves*>(high + c);
        const Bits pairs =
            __builtin_convertvector(first, Bits) | __builtin_convertvector(second, Bits) << 16;
        StoreLanes<kLanes>(reinterpret_cast<Sum>(pairs), reinterpret_cast<float*>(to + c));
      }
    }
    for (; c < width; ++c) {
      const uint32_t second = high == nullptr ? 0 : high[c * from.column];
      to[c] = low[c * from.column] | second << 16;
    }
  }
}

// to[p][tile] = the numbers of keys 2 * p and 2 * p + 1 as a pair; behind the last key there is
// zero.
template <int kVectors>
AG_AVX512_BF16 AG_INLINE void PackProbabilities(const float* from, int64_t keys, float* to) {
  constexpr int64_t kStep = kLanes * kVectors;
  // Turns [all second numbers, all first ones] into pairs.
  using Both = uint16_t __attribute__((vector_size(64)));
  for (int64_t key = 0; key < keys; key += 2) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const float* low = from + key * kStep + v * kLanes;
      const __m512 second = key + 1 < keys ? _mm512_load_ps(low + kStep) : _mm512_setzero_ps();
      const auto both = reinterpret_cast<Both>(_mm512_cvtne2ps_pbh(second, _mm512_load_ps(low)));
      *S::At(to + key / 2 * kStep + v * kLanes) = reinterpret_cast<Sum>(__builtin_shufflevector(
          both, both, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23, 8, 24, 9, 25, 10, 26,
          11, 27, 12, 28, 13, 29, 14, 30, 15, 31));
    }
  }
}

template <int kRows, int kVectors>
AG_AVX512_BF16 AG_INLINE void RunTile(const AttentionTile<uint16_t>& tile) {
  constexpr int64_t kStep = kLanes * kVectors;
  const int64_t pairs_max = (tile.block + 1) / 2;
  float* queries = tile.scratch;
  float* results = queries + tile.depth / 2 * kStep;
  float* scores = results + tile.width * kStep;
  float* probabilities = scores + tile.block * kStep;
  auto* values = reinterpret_cast<uint32_t*>(probabilities + pairs_max * kStep);
  for (int v = 0; v < kVectors; ++v) {
    const int64_t rows = std::min(kLanes, tile.queries - v * kLanes);
    PackQueries({tile.q.data + v * kLanes * tile.q.row, tile.q.row, 1}, rows, tile.depth / 2,
                queries + v * kLanes, kStep);
  }
  Running<kLanes, kVectors> at{};
  const int64_t blocks = (tile.keys + tile.block - 1) / tile.block;
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t first = tile.keys * b / blocks, keys = tile.keys * (b + 1) / blocks - first;
    const int64_t pairs = (keys + 1) / 2;
    Products<kRows, kVectors>(keys, {tile.k.data + first * tile.k.row, tile.k.row, 2}, queries,
                              tile.depth / 2, tile.scale, nullptr, scores);
    for (const ScoreStep& step : tile.steps) {
      RunStep<kLanes, kVectors>(step, first, tile.queries, keys, scores);
    }
    ExpOfBlock<kLanes, kVectors>(keys, b == 0, scores, &at);
    PackProbabilities<kVectors>(scores, keys, probabilities);
    PackValues({tile.v.data + first * tile.v.row, tile.v.row, tile.v.column}, keys, tile.width,
               values);
    Products<kRows, kVectors>(tile.width,
                              {reinterpret_cast<const uint16_t*>(values), 2, 2 * tile.width},
                              probabilities, pairs, 1, b == 0 ? nullptr : at.factors, results);
  }
  Store<kLanes, kVectors>(tile.out, tile.queries, tile.width, at, results);
}

// Takes no more vectors than the queries need.
template <int kRows, int kVectors>
AG_AVX512_BF16 AG_INLINE void RunFew(const AttentionTile<uint16_t>& tile) {
  if constexpr (kVectors > 1) {
    if (tile.queries <= kLanes * (kVectors - 1)) return RunFew<kRows, kVectors - 1>(tile);
  }
  RunTile<kRows, kVectors>(tile);
}

#define AG_BF16_ATTENTION_LOOPS(name, rows, vectors)                   \
  AG_AVX512_BF16 void Run##name(const AttentionTile<uint16_t>& tile) { \
    RunFew<rows, vectors>(tile);                                       \
  }                                                                    \
  constexpr AttentionLoops<uint16_t> k##name{kLanes, rows, vectors, Run##name};

AG_BF16_ATTENTION_LOOPS(Even, 8, 3)
AG_BF16_ATTENTION_LOOPS(Tall, 12, 2)
AG_BF16_ATTENTION_LOOPS(Wide, 6, 4)

}  // namespace

const AttentionLoops<uint16_t>& Bf16AttentionLoopsFor(std::string_view form) {
  if (form == "tall") return kTall;
  return form == "wide" ? kWide : kEven;
}

#else

const AttentionLoops<uint16_t>& Bf16AttentionLoopsFor(std::string_view) {
  static constexpr AttentionLoops<uint16_t> kNone;
  return kNone;
}

#endif

}  // namespace ag::cpu
