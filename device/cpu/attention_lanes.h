// What the loops of attention for several element types share (attention_loops.h): matrices of a
// tile, which lie transposed, the steps between the products, and the softmax of a block of keys.
// For files that define such loops.
#pragma once

#include <algorithm>
#include <bit>
#include <limits>
#include <type_traits>
#include <utility>

#include "device/cpu/attention_loops.h"
#include "device/cpu/lane_math.h"
#include "device/cpu/lanes.h"
#include "graph/half.h"

namespace ag::cpu {

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
    case ScoreStep::Kind::kReplace:
      break;
  }
  if constexpr (std::is_same_v<T, float>) {
    if (std::bit_cast<uint32_t>(operand) != kKeptScore) *score = operand;
  } else {
    using Numbers = typename Lanes<sizeof(T) / sizeof(float)>::Numbers;
    const auto is_kept = reinterpret_cast<Numbers>(operand) == static_cast<int32_t>(kKeptScore);
    *score = is_kept ? *score : operand;
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
      const V each = m.data[k * m.column] - V{};  // x + 0 is an addition, since -0 + 0 is 0.
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
  const int64_t begin = std::max<int64_t>(step.first - first_key, 0);
  keys = std::min(keys, step.last - first_key) - begin;
  if (keys <= 0) return;
  m.data += (first_key + begin) * m.column;
  scores += begin * lanes * kVectors;
  if (step.kind == Kind::kAdd) return StepOf<lanes, kVectors, Kind::kAdd>(m, queries, keys, scores);
  if (step.kind == Kind::kSub) return StepOf<lanes, kVectors, Kind::kSub>(m, queries, keys, scores);
  if (step.kind == Kind::kMul) return StepOf<lanes, kVectors, Kind::kMul>(m, queries, keys, scores);
  if (step.kind == Kind::kReplace) {
    return StepOf<lanes, kVectors, Kind::kReplace>(m, queries, keys, scores);
  }
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
template <int64_t lanes, int kVectors, class T>
AG_INLINE void Store(const StridedMatrix<T>& out, int64_t queries, int64_t width,
                     const Running<lanes, kVectors>& at, float* results) {
  using S = Simd<lanes>;
  using V = typename S::V;
  constexpr int64_t kStep = lanes * kVectors;
  for (int v = 0; v < kVectors; ++v) {
    const V inverse = 1.0f / at.sum[v];
    const int64_t left = std::min(lanes, queries - v * lanes);
    if (left <= 0) break;
    T* to = out.data + v * lanes * out.row;
    int64_t c = 0;
    if (out.column == 1) {
      for (; c + lanes <= width; c += lanes) {
        V square[lanes];
#pragma GCC unroll 16
        for (int64_t j = 0; j < lanes; ++j) {
          square[j] = *S::At(results + (c + j) * kStep + v * lanes) * inverse;
        }
        S::Transpose(square);
        if (left == lanes) {
#pragma GCC unroll 16
          for (int64_t i = 0; i < lanes; ++i) {
            StoreLanes<lanes>(square[i], to + i * out.row + c);
          }
        } else {
          for (int64_t i = 0; i < left; ++i) {
            StoreLanes<lanes>(square[i], to + i * out.row + c);
          }
        }
      }
    }
    for (; c < width; ++c) {
      for (int64_t i = 0; i < left; ++i) {
        const float result = results[c * kStep + v * lanes + i] * inverse[i];
        T* at_column = to + i * out.row + c * out.column;
        if constexpr (std::is_same_v<T, float>) {
          *at_column = result;
        } else {
          *at_column = FloatToBFloat16(result);
        }
      }
    }
  }
}

}  // namespace ag::cpu
