// Which keys a query of attention sees, read from the constants among its steps: a causal mask, a
// window. The others are left out where their probabilities are zero, as the reference computes
// them. Plain data and pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "device/cpu/attention_loops.h"

namespace ag::cpu {

struct KeyRange {
  int64_t first = 0, last = 0;  // `last` is the first one behind it.
};

// Returns the least range that holds all of them.
KeyRange UnionOf(std::span<const KeyRange> ranges);

// Returns, for each query, the range of the keys whose scores a step changes; nothing where there
// are too many to look at. A range without keys ends before it begins.
std::vector<KeyRange> ChangedKeys(const ScoreStep& step, int64_t queries, int64_t keys);

// A step with its matrix for one item (of heads and batches); no matrix: it is not known yet.
using ConstantStep = std::optional<ScoreStep>;

class VisibleKeys {
 public:
  VisibleKeys() = default;  // All are seen.
  // steps_of(item) returns the steps of each of `items` items, in order. All are seen where there
  // are too many scores to look at.
  static VisibleKeys Of(int64_t queries, int64_t keys, int64_t items,
                        const std::function<std::vector<ConstantStep>(int64_t item)>& steps_of);

  // Whether an eighth of all products of queries and keys may be left out.
  bool any() const { return !ranges_.empty(); }
  // Returns the keys that queries [first, last) see, where Holds. REQUIRES: any(), first < last.
  KeyRange Of(int64_t first, int64_t last) const;
  // Whether keys outside of the ranges have probabilities of zero when no product of a query and a
  // key, scaled, is larger than `product`.
  bool Holds(float product) const;

 private:
  std::vector<KeyRange> ranges_;  // By query.
  // A score that is left out is at most hidden_ + hidden_factor_ * product; each query has one that
  // is not, of at least seen_ - seen_factor_ * product.
  float hidden_ = 0, hidden_factor_ = 0, seen_ = 0, seen_factor_ = 0;
};

// Returns the bits of the largest magnitude of a matrix, of floats or of bf16: those of infinity or
// above where an element is infinite or NaN.
uint32_t LargestMagnitude(std::string_view isa, const StridedMatrix<const float>& matrix,
                          int64_t rows, int64_t columns);
uint32_t LargestMagnitude(std::string_view isa, const StridedMatrix<const uint16_t>& matrix,
                          int64_t rows, int64_t columns);

}  // namespace ag::cpu
