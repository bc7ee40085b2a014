#include "device/cpu/visible_keys.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "device/cpu/lanes.h"

namespace ag::cpu {
namespace {

constexpr float kUnbounded = std::numeric_limits<float>::infinity();
// A score of this or less is masked. Exponentials of less than -kExpRange are zero.
constexpr float kMaskedMax = -1000, kExpRange = 110;
// The most scores whose constants are read: 10 ns each, for each kernel that is made.
constexpr int64_t kScoresMax = int64_t{1} << 24;

// The bounds of a score by what its product may be: at least at - factor * |product|, at most
// at + factor * |product|.
struct Bounds {
  float at = 0, factor = 1;
  bool is_known = true;

  void Apply(const ConstantStep& step, int64_t query, int64_t key) {
    if (!step) {
      is_known = false;
      return;
    }
    const StridedMatrix<const float>& m = step->operand;
    const float value = m.data[query * m.row + key * m.column];
    switch (step->kind) {
      case ScoreStep::Kind::kAdd:
        at += value;
        return;
      case ScoreStep::Kind::kSub:
        at -= value;
        return;
      case ScoreStep::Kind::kMul:
        at *= value;
        factor *= std::abs(value);
        return;
      case ScoreStep::Kind::kDiv:
        at /= value;
        factor /= std::abs(value);
        return;
      case ScoreStep::Kind::kReplace:
        if (std::bit_cast<uint32_t>(value) != kKeptScore) *this = {value, 0};
        return;
    }
  }
};

// Whether a step with this number leaves a score as it is.
bool IsNeutral(ScoreStep::Kind kind, float value) {
  switch (kind) {
    case ScoreStep::Kind::kAdd:
    case ScoreStep::Kind::kSub:
      return value == 0;
    case ScoreStep::Kind::kMul:
    case ScoreStep::Kind::kDiv:
      return value == 1;
    case ScoreStep::Kind::kReplace:
      return std::bit_cast<uint32_t>(value) == kKeptScore;
  }
  return false;
}

template <int64_t lanes, class T>
AG_INLINE uint32_t LargestOfRow(const T* row, int64_t step, int64_t count) {
  using L = Lanes<lanes>;
  using Bits = typename L::Bits;
  const auto bits_of = [](T value) {
    if constexpr (std::is_same_v<T, float>) {
      return std::bit_cast<uint32_t>(value) & 0x7fffffffU;
    } else {
      return static_cast<uint32_t>(value & 0x7fffU) << 16;
    }
  };
  int64_t i = 0;
  uint32_t largest = 0;
  if (step == 1 && count >= lanes) {
    Bits most{};
    for (; i + lanes <= count; i += lanes) {
      typename L::Vector values;
      LoadLanes<lanes>(row + i, &values);
      const Bits bits = reinterpret_cast<Bits>(values) & 0x7fffffffU;
      most = most > bits ? most : bits;
    }
    for (int64_t j = 0; j < lanes; ++j) largest = std::max(largest, most[j]);
  }
  for (; i < count; ++i) largest = std::max(largest, bits_of(row[i * step]));
  return largest;
}

template <int64_t lanes, class T>
AG_INLINE uint32_t LargestOf(const StridedMatrix<const T>& m, int64_t rows, int64_t columns) {
  uint32_t largest = 0;
  for (int64_t r = 0; r < rows; ++r) {
    largest = std::max(largest, LargestOfRow<lanes>(m.data + r * m.row, m.column, columns));
  }
  return largest;
}

#define AG_LARGEST(name, lanes, T, mark)                                                        \
  mark uint32_t Largest##name(const StridedMatrix<const T>& m, int64_t rows, int64_t columns) { \
    return LargestOf<lanes>(m, rows, columns);                                                  \
  }

AG_LARGEST(FloatAvx512, 16, float, AG_AVX512)
AG_LARGEST(FloatAvx2, 8, float, AG_AVX2)
AG_LARGEST(FloatSse, 4, float, )
AG_LARGEST(HalfAvx512, 16, uint16_t, AG_AVX512)
AG_LARGEST(HalfAvx2, 8, uint16_t, AG_AVX2)
AG_LARGEST(HalfSse, 4, uint16_t, )

// Calls `largest` on the matrix with rows as columns where these lie side by side.
template <class T, class Largest>
uint32_t Sideways(StridedMatrix<const T> m, int64_t rows, int64_t columns, const Largest& largest) {
  if (m.row != 1) return largest(m, rows, columns);
  std::swap(m.row, m.column);
  return largest(m, columns, rows);
}

}  // namespace

KeyRange UnionOf(std::span<const KeyRange> ranges) {
  KeyRange all = ranges[0];
  for (const KeyRange& range : ranges.subspan(1)) {
    all = {std::min(all.first, range.first), std::max(all.last, range.last)};
  }
  return all;
}

std::vector<KeyRange> ChangedKeys(const ScoreStep& step, int64_t queries, int64_t keys) {
  if (keys > kScoresMax / queries) return {};
  std::vector<KeyRange> changed(queries, {keys, 0});
  const StridedMatrix<const float>& m = step.operand;
  for (int64_t q = 0; q < queries; ++q) {
    KeyRange& range = changed[q];
    for (int64_t k = 0; k < keys; ++k) {
      if (IsNeutral(step.kind, m.data[q * m.row + k * m.column])) continue;
      range = {std::min(range.first, k), k + 1};
    }
  }
  return changed;
}

VisibleKeys VisibleKeys::Of(
    int64_t queries, int64_t keys, int64_t items,
    const std::function<std::vector<ConstantStep>(int64_t item)>& steps_of) {
  VisibleKeys result;
  if (keys < 2 || items > kScoresMax / (queries * keys)) return result;
  result.ranges_.assign(queries, {keys, 0});
  std::vector<float> seen(queries, kUnbounded);
  result.hidden_ = -kUnbounded;
  for (int64_t item = 0; item < items; ++item) {
    const std::vector<ConstantStep> steps = steps_of(item);
    for (int64_t q = 0; q < queries; ++q) {
      KeyRange& range = result.ranges_[q];
      float most = -kUnbounded;
      bool sees = false;
      Bounds hidden{-kUnbounded, 0};
      for (int64_t k = 0; k < keys; ++k) {
        Bounds score;
        for (const ConstantStep& step : steps) score.Apply(step, q, k);
        if (score.is_known && score.at <= kMaskedMax) {
          hidden.at = std::max(hidden.at, score.at);
          hidden.factor = std::max(hidden.factor, score.factor);
          continue;
        }
        sees = true;
        range = {std::min(range.first, k), std::max(range.last, k + 1)};
        if (!score.is_known) continue;
        most = std::max(most, score.at);
        result.seen_factor_ = std::max(result.seen_factor_, score.factor);
      }
      if (!sees) {  // Softmax shares among keys that are all masked.
        range = {0, keys};
        continue;
      }
      seen[q] = std::min(seen[q], most);
      result.hidden_ = std::max(result.hidden_, hidden.at);
      result.hidden_factor_ = std::max(result.hidden_factor_, hidden.factor);
    }
  }
  int64_t left_out = 0;
  for (const KeyRange& range : result.ranges_) left_out += keys - (range.last - range.first);
  result.seen_ = *std::ranges::min_element(seen);
  return left_out * 8 >= queries * keys ? result : VisibleKeys();
}

KeyRange VisibleKeys::Of(int64_t first, int64_t last) const {
  return UnionOf({ranges_.data() + first, ranges_.data() + last});
}

bool VisibleKeys::Holds(float product) const {
  // False where a bound is infinite or no number.
  return seen_ - seen_factor_ * product - kExpRange > hidden_ + hidden_factor_ * product &&
         product < kUnbounded;
}

uint32_t LargestMagnitude(std::string_view isa, const StridedMatrix<const float>& matrix,
                          int64_t rows, int64_t columns) {
  return Sideways(matrix, rows, columns,
                  ForInstructionSet(isa, LargestFloatAvx512, LargestFloatAvx2, LargestFloatSse));
}

uint32_t LargestMagnitude(std::string_view isa, const StridedMatrix<const uint16_t>& matrix,
                          int64_t rows, int64_t columns) {
  return Sideways(matrix, rows, columns,
                  ForInstructionSet(isa, LargestHalfAvx512, LargestHalfAvx2, LargestHalfSse));
}

}  // namespace ag::cpu
