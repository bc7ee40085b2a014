// The loops of every instruction set that this machine has, against plain ones.
#include "device/cpu/recurrent_loops.h"

#include <gtest/gtest.h>

#include <cmath>

#include "device/cpu/loops_testing.h"

namespace ag::cpu {
namespace {

TEST(RecurrentLoops, ProductsAddUp) {
  for (const std::string& isa : UsableInstructionSets()) {
    const RecurrentLoops& loops = RecurrentLoopsFor(isa);
    for (int64_t gates = 1; gates <= 4; ++gates) {
      for (const int64_t k : {0, 1, 5, 8, 19}) {
        for (int64_t rows = 0; rows <= 15; ++rows) {
          const int64_t width = gates * loops.lanes;
          const Waves panel(k * width, 1), in(rows * k, 2), out(rows * width, 3), start(width, 4);
          for (const bool starts : {false, true}) {
            std::vector<const float*> in_rows;
            std::vector<float*> out_rows;
            std::vector<double> expected;
            for (int64_t r = 0; r < rows; ++r) {
              in_rows.push_back(in.data() + r * k);
              out_rows.push_back(out.data() + r * width);
              for (int64_t i = 0; i < width; ++i) {
                double sum = starts ? start.data()[i] : out.data()[r * width + i];
                for (int64_t j = 0; j < k; ++j) {
                  sum += static_cast<double>(in.data()[r * k + j]) * panel.data()[j * width + i];
                }
                expected.push_back(sum);
              }
            }
            loops.product({.rows = rows,
                           .k = k,
                           .gates = gates,
                           .in = in_rows.data(),
                           .panel = panel.data(),
                           .start = starts ? start.data() : nullptr,
                           .out = out_rows.data()});
            for (size_t i = 0; i < expected.size(); ++i) {
              ASSERT_NEAR(out.data()[i], expected[i], 2e-5) << isa << " gates " << gates;
            }
          }
        }
      }
    }
  }
}

double SigmoidOf(double x) { return 1 / (1 + std::exp(-x)); }

TEST(RecurrentLoops, CellsComputeTheirFormulas) {
  for (const std::string& isa : UsableInstructionSets()) {
    const RecurrentLoops& loops = RecurrentLoopsFor(isa);
    const int64_t n = loops.lanes;
    for (const CellStep step : {CellStep::kLstm, CellStep::kGruReset, CellStep::kGruUpdate,
                                CellStep::kLinearGru, CellStep::kTanh, CellStep::kRelu}) {
      const Waves gates(4 * n, 1), sums(4 * n, 2), h(n, 3), c(n, 4), out(n, 5);
      const std::vector<float> g(gates.data(), gates.data() + 4 * n),
          before(c.data(), c.data() + n);
      float *gate_rows[] = {gates.data()}, *c_rows[] = {c.data()}, *out_rows[] = {out.data()};
      const float *sum_rows[] = {sums.data()}, *h_rows[] = {h.data()};
      loops.cells({.step = step,
                   .rows = 1,
                   .gates = gate_rows,
                   .recurrent = sum_rows,
                   .h = h_rows,
                   .c = c_rows,
                   .out = out_rows});
      for (int64_t i = 0; i < n; ++i) {
        const double a = g[i], b = g[n + i], d = g[2 * n + i], hidden = h.data()[i];
        if (step == CellStep::kLstm) {
          const double cell = SigmoidOf(d) * before[i] + SigmoidOf(a) * std::tanh(g[3 * n + i]);
          EXPECT_NEAR(c.data()[i], cell, 2e-6) << isa;
          EXPECT_NEAR(out.data()[i], SigmoidOf(b) * std::tanh(cell), 2e-6) << isa;
        } else if (step == CellStep::kGruReset) {
          EXPECT_NEAR(gates.data()[i], SigmoidOf(a), 2e-6) << isa;
          EXPECT_NEAR(c.data()[i], SigmoidOf(b) * hidden, 2e-6) << isa;
        } else if (step == CellStep::kGruUpdate) {
          EXPECT_NEAR(out.data()[i], (1 - a) * std::tanh(d) + a * hidden, 2e-6) << isa;
        } else if (step == CellStep::kLinearGru) {
          const double z = SigmoidOf(a + sums.data()[i]), r = SigmoidOf(b + sums.data()[n + i]);
          const double next = std::tanh(d + r * sums.data()[2 * n + i]);
          EXPECT_NEAR(out.data()[i], (1 - z) * next + z * hidden, 2e-6) << isa;
        } else {
          const double expected = step == CellStep::kTanh ? std::tanh(a) : std::max(a, 0.0);
          EXPECT_NEAR(out.data()[i], expected, 2e-6) << isa;
        }
      }
    }
  }
}

}  // namespace
}  // namespace ag::cpu
