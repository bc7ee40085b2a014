// The inner loops of attention for one tile of queries, with transposed scores: a vector holds
// neighbouring queries, so softmax works lane by lane and neither the count of keys nor the head
// size has a tail of lanes. Keys come in blocks with a running maximum (Milakov and Gimelshein
// 2018, "Online normalizer calculation for softmax", section 3). Written for each instruction set.
// Pure functions.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "plan/spec/attention_form.h"

namespace ag::cpu {

// A matrix in memory. Steps are in elements.
template <class T>
struct StridedMatrix {
  T* data = nullptr;
  int64_t row = 0, column = 0;  // From one to the next.
};

// An operation on the scores with another matrix: rows are queries, columns are keys. kReplace puts
// the matrix's numbers in the place of the scores, but where their bits are kKeptScore.
struct ScoreStep {
  using Kind = AttentionStep::Kind;
  Kind kind = Kind::kAdd;
  StridedMatrix<const float> operand;
  // Scores of other keys than these stay as they are; `last` is the first one behind.
  int64_t first = 0, last = std::numeric_limits<int64_t>::max();
};
inline constexpr uint32_t kKeptScore = 0xffedcba9;  // A NaN that no operation makes.

// out = softmax(steps(q * scale . k^T)) . v for the queries of one tile, with elements of type T:
// float, or uint16_t that holds bf16.
template <class T>
struct AttentionTile {
  int64_t queries = 0;  // From 1 to lanes * vectors of the loops.
  int64_t keys = 0;
  int64_t depth = 0;  // Of a query and a key.
  int64_t width = 0;  // Of a value and a result.
  int64_t block = 0;  // Keys at a time.
  float scale = 1;
  StridedMatrix<const T> q, k, v;  // [queries, depth], [keys, depth], [keys, width].
  StridedMatrix<T> out;            // [queries, width].
  std::span<const ScoreStep> steps;
  float* scratch = nullptr;  // ScratchFloats() of them, 64-byte aligned.
};

template <class T>
struct AttentionLoops {
  int64_t lanes = 1;    // Floats of a vector.
  int64_t rows = 1;     // Keys, or columns of the result, that are computed together.
  int64_t vectors = 1;  // Vectors of queries, likewise.
  void (*run)(const AttentionTile<T>& tile) = nullptr;

  // For the tile's transposed queries, results and block of scores; of bf16 also for the block's
  // probabilities and values in pairs of keys.
  int64_t ScratchFloats(int64_t depth, int64_t width, int64_t block) const {
    const int64_t pairs = (block + 1) / 2;
    const int64_t more = sizeof(T) == sizeof(float) ? 0 : pairs * (lanes * vectors + width);
    return lanes * vectors * (depth + width + block) + more;
  }
};

// The forms of the loops: "tall" ones compute many keys by few vectors, "wide" ones the reverse.
// "narrow" ones have vectors of half the lanes, of which fewer are without a query.
inline constexpr std::string_view kAttentionForms[] = {"wide", "even", "tall", "narrow"};

// Returns the loops for an instruction set of InstructionSet() and a form of kAttentionForms.
const AttentionLoops<float>& AttentionLoopsFor(std::string_view isa, std::string_view form);

// Returns the loops that multiply bf16 in pairs with sums in f32 (AVX512-BF16's vdpbf16ps), which
// takes half as long. Queries are not scaled before they are multiplied, but their scores are.
// REQUIRES: HasBf16Products() (host.h); in a tile, depth is even, the columns of q and k lie side
// by side, and q's rows begin an even number of elements apart; the form is none of "narrow".
const AttentionLoops<uint16_t>& Bf16AttentionLoopsFor(std::string_view form);

}  // namespace ag::cpu
