#include "device/cpu/attention_loops.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "device/cpu/fast_math.h"
#include "device/cpu/lane_math.h"
#include "device/cpu/lanes.h"

namespace ag::cpu {
namespace {

#define AG_INLINE_LAMBDA __attribute__((always_inline))

// The vectors of one instruction set. A tile holds its matrices transposed: row r has the values of
// all queries of the tile side by side.
template <int64_t lanes>
struct Simd {
  using V = typename Lanes<lanes>::Vector;
  using U = typename Lanes<lanes>::Loose;

  static AG_INLINE V* At(float* p) { return reinterpret_cast<V*>(p); }

  template <int kHalf, size_t... j>
  static AG_INLINE void Swap(V* a, V* b, std::index_sequence<j...>) {
    const V low = __builtin_shufflevector(*a, *b, ((j & kHalf) == 0 ? j : lanes + j - kHalf)...);
    const V high = __builtin_shufflevector(*a, *b, ((j & kHalf) == 0 ? j + kHalf : lanes + j)...);
    *a = low;
    *b = high;
  }

  // Transposes a square of lanes x lanes by swapping halves, quarters, and so on.
  template <int kHalf = lanes / 2>
  static AG_INLINE void Transpose(V (&rows)[lanes]) {
    if constexpr (kHalf > 0) {
#pragma GCC unroll 16
      for (int i = 0; i < lanes; ++i) {
        if ((i & kHalf) == 0) {
          Swap<kHalf>(&rows[i], &rows[i + kHalf], std::make_index_sequence<lanes>());
        }
      }
      Transpose<kHalf / 2>(rows);
    }
  }
};

// Calls body(begin, square) for each `lanes` columns of `lanes` rows of a matrix, transposed;
// body(begin, column, i, value) for what is left over.
template <int64_t lanes, class Squares, class Rest>
AG_INLINE void ForColumns(const StridedMatrix<const float>& from, int64_t rows, int64_t columns,
                          const Squares& squares, const Rest& rest) {
  using S = Simd<lanes>;
  int64_t c = 0;
  if (from.column == 1) {
    for (; c + lanes <= columns; c += lanes) {
      typename S::V square[lanes];
#pragma GCC unroll 16
      for (int64_t i = 0; i < lanes; ++i) {
        const float* row = from.data + std::min(i, rows - 1) * from.row + c;
        square[i] = *reinterpret_cast<const typename S::U*>(row);
      }
      S::Transpose(square);
      squares(c, square);
    }
  }
  for (; c < columns; ++c) {
    for (int64_t i = 0; i < rows; ++i) rest(c, i, from.data[i * from.row + c * from.column]);
  }
}

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
      const V each = V{} + a[r * a_row];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sum[r][v] += each * row[v];
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

template <class T, class U>
AG_INLINE void Apply(ScoreStep::Kind kind, T* score, const U& operand) {
  switch (kind) {
    case ScoreStep::Kind::kAdd:
      *score += operand;
      return;
    case ScoreStep::Kind::kSub:
      *score -= operand;
      return;
    case ScoreStep::Kind::kMul:
      *score *= operand;
      return;
    case ScoreStep::Kind::kDiv:
      *score /= operand;
      return;
  }
}

// Applies a step to the scores[keys][tile] of `queries` queries.
template <int64_t lanes, int kVectors, ScoreStep::Kind kind>
AG_INLINE void StepOf(const StridedMatrix<const float>& m, int64_t queries, int64_t keys,
                      float* scores) {
  using S = Simd<lanes>;
  using V = typename S::V;
  constexpr int64_t kStep = lanes * kVectors;
  if (m.row == 0) {
    for (int64_t k = 0; k < keys; ++k) {
      const V each = V{} + m.data[k * m.column];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) Apply(kind, S::At(scores + k * kStep + v * lanes), each);
    }
    return;
  }
  for (int v = 0; v < kVectors; ++v) {
    const int64_t left = std::min(lanes, queries - v * lanes);
    if (left <= 0) break;
    float* to = scores + v * lanes;
    if (m.row == 1 && left == lanes) {
      for (int64_t k = 0; k < keys; ++k) {
        const auto* from = m.data + v * lanes + k * m.column;
        Apply(kind, S::At(to + k * kStep), V(*reinterpret_cast<const typename S::U*>(from)));
      }
      continue;
    }
    ForColumns<lanes>(
        {m.data + v * lanes * m.row, m.row, m.column}, left, keys,
        [&](int64_t k, V(&square)[lanes]) AG_INLINE_LAMBDA {
#pragma GCC unroll 16
          for (int64_t j = 0; j < lanes; ++j) Apply(kind, S::At(to + (k + j) * kStep), square[j]);
        },
        [&](int64_t k, int64_t i, float value)
            AG_INLINE_LAMBDA { Apply(kind, to + k * kStep + i, value); });
  }
}

template <int64_t lanes, int kVectors>
AG_INLINE void RunStep(const ScoreStep& step, int64_t first_key, int64_t queries, int64_t keys,
                       float* scores) {
  using Kind = ScoreStep::Kind;
  StridedMatrix<const float> m = step.operand;
  m.data += first_key * m.column;
  if (step.kind == Kind::kAdd) return StepOf<lanes, kVectors, Kind::kAdd>(m, queries, keys, scores);
  if (step.kind == Kind::kSub) return StepOf<lanes, kVectors, Kind::kSub>(m, queries, keys, scores);
  if (step.kind == Kind::kMul) return StepOf<lanes, kVectors, Kind::kMul>(m, queries, keys, scores);
  StepOf<lanes, kVectors, Kind::kDiv>(m, queries, keys, scores);
}

// What softmax knows of the keys so far, by query.
template <int64_t lanes, int kVectors>
struct Running {
  typename Lanes<lanes>::Vector most[kVectors], sum[kVectors];
  typename Lanes<lanes>::Vector factors[kVectors];  // For what was summed before the last block.
};

// Replaces a block of scores by their exponentials. Where an element is NaN the sum is NaN. A query
// whose keys are all masked by -infinity has the sum 0, and so the result NaN, as in the reference.
template <int64_t lanes, int kVectors>
AG_INLINE void ExpOfBlock(int64_t keys, bool is_first, float* scores,
                          Running<lanes, kVectors>* at) {
  using S = Simd<lanes>;
  using V = typename S::V;
  constexpr int64_t kStep = lanes * kVectors;
  const V lowest = V{} - std::numeric_limits<float>::infinity();
  V most[kVectors], subtracted[kVectors], sum[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) most[v] = is_first ? lowest : at->most[v];
  for (int64_t k = 0; k < keys; ++k) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const V score = *S::At(scores + k * kStep + v * lanes);
      most[v] = most[v] > score ? most[v] : score;
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    subtracted[v] = most[v] == lowest ? V{} : most[v];
    sum[v] = V{};
    if (!is_first) {
      const V before = at->most[v] - subtracted[v];
      ExpOfNegative<lanes>(before, at->factors[v]);
      sum[v] = at->sum[v] * at->factors[v];
    }
    at->most[v] = most[v];
  }
  for (int64_t k = 0; k < keys; ++k) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      V* score = S::At(scores + k * kStep + v * lanes);
      const V x = *score - subtracted[v];
      V y;
      ExpOfNegative<lanes>(x, y);
      *score = y;
      sum[v] += y;
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) at->sum[v] = sum[v];
}

// Writes results[width][tile], divided by the sums, to the rows of `out`.
template <int64_t lanes, int kVectors>
AG_INLINE void Store(const AttentionTile& tile, const Running<lanes, kVectors>& at,
                     float* results) {
  using S = Simd<lanes>;
  using V = typename S::V;
  constexpr int64_t kStep = lanes * kVectors;
  const StridedMatrix<float>& out = tile.out;
  for (int v = 0; v < kVectors; ++v) {
    const V inverse = 1.0f / at.sum[v];
    const int64_t left = std::min(lanes, tile.queries - v * lanes);
    if (left <= 0) break;
    float* to = out.data + v * lanes * out.row;
    int64_t c = 0;
    if (out.column == 1) {
      for (; c + lanes <= tile.width; c += lanes) {
        V square[lanes];
#pragma GCC unroll 16
        for (int64_t j = 0; j < lanes; ++j) {
          square[j] = *S::At(results + (c + j) * kStep + v * lanes) * inverse;
        }
        S::Transpose(square);
        if (left == lanes) {
#pragma GCC unroll 16
          for (int64_t i = 0; i < lanes; ++i) {
            *reinterpret_cast<typename S::U*>(to + i * out.row + c) = square[i];
          }
        } else {
          for (int64_t i = 0; i < left; ++i) {
            *reinterpret_cast<typename S::U*>(to + i * out.row + c) = square[i];
          }
        }
      }
    }
    for (; c < tile.width; ++c) {
      for (int64_t i = 0; i < left; ++i) {
        to[i * out.row + c * out.column] = results[c * kStep + v * lanes + i] * inverse[i];
      }
    }
  }
}

template <int64_t lanes, int kRows, int kVectors>
AG_INLINE void RunTile(const AttentionTile& tile) {
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
  Store<lanes, kVectors>(tile, at, results);
}

// Takes no more vectors than the queries need.
template <int64_t lanes, int kRows, int kVectors>
AG_INLINE void RunFew(const AttentionTile& tile) {
  if constexpr (kVectors > 1) {
    if (tile.queries <= lanes * (kVectors - 1)) return RunFew<lanes, kRows, kVectors - 1>(tile);
  }
  RunTile<lanes, kRows, kVectors>(tile);
}

#define AG_ATTENTION_LOOPS(name, lanes, rows, vectors, mark)                             \
  mark void Run##name(const AttentionTile& tile) { RunFew<lanes, rows, vectors>(tile); } \
  constexpr AttentionLoops k##name{lanes, rows, vectors, Run##name};

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
AG_ATTENTION_LOOPS(EvenSse, 4, 3, 3, )
AG_ATTENTION_LOOPS(TallSse, 4, 4, 2, )
AG_ATTENTION_LOOPS(WideSse, 4, 2, 4, )

}  // namespace

const AttentionLoops& AttentionLoopsFor(std::string_view isa, std::string_view form) {
  if (form == "tall") return ForInstructionSet(isa, kTallAvx512, kTallAvx2, kTallSse);
  if (form == "narrow") return ForInstructionSet(isa, kNarrowAvx512, kNarrowAvx2, kTallSse);
  if (form == "wide") return ForInstructionSet(isa, kWideAvx512, kWideAvx2, kWideSse);
  return ForInstructionSet(isa, kEvenAvx512, kEvenAvx2, kEvenSse);
}

}  // namespace ag::cpu
