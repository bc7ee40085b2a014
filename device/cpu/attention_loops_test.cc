// The loops of every instruction set that this machine has and every form, against the definition
// in double.
#include "device/cpu/attention_loops.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "device/cpu/half_loops.h"
#include "device/cpu/loops_testing.h"
#include "graph/half.h"

namespace ag::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// Sizes of a case, and where its matrices lie.
struct Sizes {
  int64_t queries = 1, keys = 1, depth = 32, width = 32;
  int64_t block = 128;
  bool transposed = false;  // Each matrix by columns, with gaps in memory.
};

// A matrix in memory with unaligned rows.
struct Held {
  Held(int64_t rows, int64_t columns, bool transposed, int64_t seed)
      : waves((rows + 3) * (columns + 3) + 1, seed) {
    matrix = {waves.data() + 1, columns + 3, 1};
    if (transposed) matrix = {waves.data() + 1, 1, rows + 3};
  }
  float& At(int64_t row, int64_t column) const {
    return matrix.data[row * matrix.row + column * matrix.column];
  }
  StridedMatrix<const float> read() const { return {matrix.data, matrix.row, matrix.column}; }

  Waves waves;
  StridedMatrix<float> matrix;
};

double Apply(ScoreStep::Kind kind, double score, float operand) {
  if (kind == ScoreStep::Kind::kReplace) {
    return std::bit_cast<uint32_t>(operand) == kKeptScore ? score : operand;
  }
  if (kind == ScoreStep::Kind::kAdd) return score + operand;
  if (kind == ScoreStep::Kind::kSub) return score - operand;
  return kind == ScoreStep::Kind::kMul ? score * operand : score / operand;
}

// One row of the definition.
std::vector<double> ExpectedRow(const AttentionTile<float>& tile, int64_t query) {
  const auto number = [](const StridedMatrix<const float>& m, int64_t row, int64_t column) {
    return m.data[row * m.row + column * m.column];
  };
  const auto at = [&](const StridedMatrix<const float>& m, int64_t row, int64_t column) {
    return static_cast<double>(number(m, row, column));
  };
  std::vector<double> scores(tile.keys);
  double most = -kInfinity, sum = 0;
  for (int64_t k = 0; k < tile.keys; ++k) {
    for (int64_t d = 0; d < tile.depth; ++d) scores[k] += at(tile.q, query, d) * at(tile.k, k, d);
    scores[k] *= tile.scale;
    for (const ScoreStep& step : tile.steps) {
      // In f32, so that a mask swallows as many digits as it does there.
      scores[k] = static_cast<float>(Apply(step.kind, scores[k], number(step.operand, query, k)));
    }
    most = scores[k] > most ? scores[k] : most;
  }
  for (double& score : scores) sum += score = std::exp(score - most);
  std::vector<double> row(tile.width);
  for (int64_t c = 0; c < tile.width; ++c) {
    for (int64_t k = 0; k < tile.keys; ++k) row[c] += scores[k] / sum * at(tile.v, k, c);
  }
  return row;
}

// Runs the tile by each form of each instruction set. `tile` has all but its result and scratch.
void Check(AttentionTile<float> tile, bool transposed, const std::string& what,
           double tolerance = 2e-5) {
  const int64_t queries = tile.queries;
  for (const std::string& isa : UsableInstructionSets()) {
    for (const std::string_view form : kAttentionForms) {
      const AttentionLoops<float>& loops = AttentionLoopsFor(isa, form);
      tile.queries = std::min(queries, loops.lanes * loops.vectors);
      const Waves scratch(loops.ScratchFloats(tile.depth, tile.width, tile.block), 7);
      const Held out(tile.queries, tile.width, transposed, 5),
          before(tile.queries, tile.width, transposed, 5);
      tile.out = out.matrix;
      tile.scratch = scratch.data();
      loops.run(tile);
      int64_t wrong = 0;
      for (int64_t q = 0; q < tile.queries; ++q) {
        const std::vector<double> row = ExpectedRow(tile, q);
        for (int64_t c = 0; c < tile.width; ++c) {
          const double difference = std::abs(row[c] - out.At(q, c));
          const bool fits = std::isnan(row[c]) ? std::isnan(out.At(q, c)) : difference < tolerance;
          if (!fits) ++wrong;
        }
        out.At(q, 0) = before.At(q, 0);
        for (int64_t c = 1; c < tile.width; ++c) out.At(q, c) = before.At(q, c);
      }
      EXPECT_EQ(wrong, 0) << what << " " << isa << " " << form;
      const int64_t all = (tile.queries + 3) * (tile.width + 3) + 1;
      EXPECT_TRUE(std::equal(out.waves.data(), out.waves.data() + all, before.waves.data()))
          << what << " " << isa << " " << form << ": wrote beside the result";
    }
  }
}

std::string NameOf(const Sizes& s) {
  return std::to_string(s.queries) + " queries, " + std::to_string(s.keys) + " keys, " +
         std::to_string(s.depth) + " deep, " + std::to_string(s.width) + " wide, " +
         (s.transposed ? "by columns" : "by rows");
}

void CheckSizes(const Sizes& s) {
  const Held q(s.queries, s.depth, s.transposed, 1), k(s.keys, s.depth, s.transposed, 2);
  const Held v(s.keys, s.width, s.transposed, 3), bias(s.queries, s.keys, s.transposed, 4);
  AttentionTile<float> tile{.queries = s.queries,
                            .keys = s.keys,
                            .depth = s.depth,
                            .width = s.width,
                            .block = std::min(s.block, s.keys),
                            .scale = 0.3f,
                            .q = q.read(),
                            .k = k.read(),
                            .v = v.read()};
  Check(tile, s.transposed, NameOf(s));
  for (const auto kind : {ScoreStep::Kind::kAdd, ScoreStep::Kind::kSub, ScoreStep::Kind::kMul}) {
    const ScoreStep steps[] = {{kind, bias.read()},
                               {ScoreStep::Kind::kAdd, {bias.matrix.data, 0, bias.matrix.column}}};
    tile.steps = steps;
    Check(tile, s.transposed, NameOf(s) + ", with steps");
  }
  const Held mask(s.queries, s.keys, s.transposed, 6);
  for (int64_t i = 0; i < s.queries; ++i) {
    for (int64_t j = i % 3; j < s.keys; j += 2) mask.At(i, j) = std::bit_cast<float>(kKeptScore);
  }
  const ScoreStep replaced[] = {
      {ScoreStep::Kind::kReplace, mask.read()},
      {ScoreStep::Kind::kReplace, {mask.matrix.data, 0, mask.matrix.column}}};
  tile.steps = replaced;
  Check(tile, s.transposed, NameOf(s) + ", replaced");
  const float divisor = 3;
  const ScoreStep division{ScoreStep::Kind::kDiv, {&divisor, 0, 0}};
  tile.steps = {&division, 1};
  Check(tile, s.transposed, NameOf(s) + ", divided");
}

TEST(AttentionLoops, AgreesWithTheDefinition) {
  for (const bool transposed : {false, true}) {
    for (const int64_t keys : {1, 49, 197, 513}) {
      CheckSizes({.queries = 64, .keys = keys, .transposed = transposed});
    }
    for (const int64_t queries : {1, 5, 16, 17, 33, 47, 48, 63}) {
      CheckSizes({.queries = queries, .keys = 37, .transposed = transposed});
    }
    CheckSizes({.queries = 3, .keys = 65, .depth = 1, .width = 1, .transposed = transposed});
    CheckSizes({.queries = 20,
                .keys = 130,
                .depth = 40,
                .width = 72,
                .block = 64,
                .transposed = transposed});
    CheckSizes({.queries = 9, .keys = 12, .depth = 256, .width = 256, .transposed = transposed});
  }
}

// Each mask for queries of a tile: all keys masked, all but one, keys of one block, no number.
TEST(AttentionLoops, TreatsMasksAsSoftmaxDoes) {
  constexpr int64_t kQueries = 21, kKeys = 150;
  const Held q(kQueries, 16, false, 1), k(kKeys, 16, false, 2), v(kKeys, 16, false, 3);
  for (const float masked : {-kInfinity, -3e38f, -1e4f, kNaN, kInfinity}) {
    for (const bool is_shared : {false, true}) {
      const Held mask(kQueries, kKeys, false, 4);
      for (int64_t i = 0; i < kQueries; ++i) {
        const int64_t form = is_shared ? 2 : i % 4;
        for (int64_t j = 0; j < kKeys; ++j) {
          const bool is_masked = form == 0 || (form == 1 && j != 77) || (form == 2 && j < 80);
          mask.At(i, j) = is_masked ? masked : 0;
        }
      }
      const StridedMatrix<const float> m = mask.read();
      const ScoreStep step{ScoreStep::Kind::kAdd, {m.data, is_shared ? 0 : m.row, 1}};
      Check({.queries = kQueries,
             .keys = kKeys,
             .depth = 16,
             .width = 16,
             .block = 64,
             .scale = 0.25f,
             .q = q.read(),
             .k = k.read(),
             .v = v.read(),
             .steps = {&step, 1}},
            false, "mask " + std::to_string(masked), masked == -1e4f ? 2e-3 : 2e-5);
    }
  }
}

// A matrix of bf16, in rows that begin an odd number of elements behind each other or, where the
// loops want it so, an even one, and the same numbers as floats.
struct HeldBf16 {
  HeldBf16(int64_t rows, int64_t columns, bool is_even, int64_t seed)
      : floats(rows, columns, false, seed),
        step(columns + (columns % 2 == (is_even ? 0 : 1) ? 2 : 1)) {
    bits.resize(rows * step + 1);
    for (int64_t r = 0; r < rows; ++r) {
      uint16_t* to = bits.data() + 1 + r * step;
      NarrowToHalf(DType::kBFloat16, &floats.At(r, 0), to, columns);
      WidenHalf(DType::kBFloat16, to, &floats.At(r, 0), columns);
    }
  }
  StridedMatrix<const uint16_t> read() const { return {bits.data() + 1, step, 1}; }

  Held floats;
  int64_t step;
  std::vector<uint16_t> bits;
};

// Runs every form of the loops on bf16 and compares with the definition on the same numbers.
void CheckBf16(const Sizes& s, std::span<const ScoreStep> steps) {
  const HeldBf16 q(s.queries, s.depth, true, 1), k(s.keys, s.depth, false, 2),
      v(s.keys, s.width, false, 3);
  const AttentionTile<float> floats{.queries = s.queries,
                                    .keys = s.keys,
                                    .depth = s.depth,
                                    .width = s.width,
                                    .scale = 0.3f,
                                    .q = q.floats.read(),
                                    .k = k.floats.read(),
                                    .v = v.floats.read(),
                                    .steps = steps};
  for (const std::string_view form : {"wide", "even", "tall"}) {
    const AttentionLoops<uint16_t>& loops = Bf16AttentionLoopsFor(form);
    const int64_t block = std::min(s.block, s.keys);
    const int64_t queries = std::min(s.queries, loops.lanes * loops.vectors);
    const Waves scratch(loops.ScratchFloats(s.depth, s.width, block), 7);
    HeldBf16 out(s.queries, s.width, false, 5);
    loops.run({.queries = queries,
               .keys = s.keys,
               .depth = s.depth,
               .width = s.width,
               .block = block,
               .scale = 0.3f,
               .q = q.read(),
               .k = k.read(),
               .v = v.read(),
               .out = {out.bits.data() + 1, out.step, 1},
               .steps = steps,
               .scratch = scratch.data()});
    int64_t wrong = 0;
    for (int64_t i = 0; i < queries; ++i) {
      const std::vector<double> row = ExpectedRow(floats, i);
      for (int64_t c = 0; c < s.width; ++c) {
        const double found = BFloat16ToFloat(out.bits[1 + i * out.step + c]);
        // Probabilities and results each are rounded by 2^-9.
        const bool fits = std::isnan(row[c]) ? std::isnan(found) : std::abs(row[c] - found) < 8e-3;
        if (!fits) ++wrong;
      }
    }
    EXPECT_EQ(wrong, 0) << NameOf(s) << " " << form;
  }
}

TEST(AttentionLoops, MultiplyBf16WithSumsInFloat) {
  if (!HasBf16Products()) GTEST_SKIP() << "no instructions for bf16";
  for (const int64_t keys : {1, 2, 49, 197, 513}) CheckBf16({.queries = 64, .keys = keys}, {});
  for (const int64_t queries : {1, 5, 16, 17, 33, 47, 48, 63}) {
    CheckBf16({.queries = queries, .keys = 37}, {});
  }
  CheckBf16({.queries = 3, .keys = 65, .depth = 2, .width = 1}, {});
  CheckBf16({.queries = 20, .keys = 131, .depth = 40, .width = 72, .block = 64}, {});
  const Held bias(64, 197, false, 4);
  for (const float masked : {-1.0f, -kInfinity, kNaN}) {
    for (int64_t j = 0; j < 90; ++j) bias.At(7, j) = bias.At(9, j + 107) = masked;
    for (int64_t j = 0; j < 197; ++j) bias.At(8, j) = masked;
    const ScoreStep step{ScoreStep::Kind::kAdd, bias.read()};
    CheckBf16({.queries = 64, .keys = 197}, {&step, 1});
  }
}

}  // namespace
}  // namespace ag::cpu
