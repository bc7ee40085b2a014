// Loops of the CPU's kernels, alone on one core, on data that fit the second cache.
//   build/cpu_loops
// A line for each function: nanoseconds per element, least of 50 passes over 1,536 rows of 128.
// Last the transpose of K in BERT-base: 12 times 128 by 64 elements out of lines of 3,072 bytes.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "device/cpu/block_ops.h"
#include "device/cpu/host.h"
#include "device/cpu/softmax_loops.h"
#include "device/cpu/strided.h"
#include "graph/text_form.h"

namespace ag {
namespace {

constexpr int kPasses = 50;
constexpr int64_t kRows = 1536, kColumns = 128;

// Returns the least nanoseconds of a pass.
template <class F>
double LeastNs(F&& pass) {
  double least = 1e18;
  for (int i = 0; i < kPasses; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    pass();
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    least = std::min(least, took.count());
  }
  return least;
}

void PrintPerElement(const char* name, double ns) {
  std::printf("%-10s %6.3f ns/element\n", name, ns / (kRows * kColumns));
}

// Times the loop of an element-wise operator.
void TimeOperator(const char* name, const char* call, const std::vector<float>& x,
                  std::vector<float>& y) {
  const Graph graph = *ParseGraph(std::string("input x f32[8]\noutput y = ") + call);
  const cpu::BlockOp<float> op = cpu::BlockOpOf<float>(graph.node(graph.outputs()[0].edge.node));
  PrintPerElement(name, LeastNs([&] {
                    for (int64_t row = 0; row < kRows; ++row) {
                      const float* from = &x[row * kColumns];
                      op.run(from, from, from, &y[row * kColumns], kColumns, op.p, op.q);
                    }
                  }));
}

void TimeTransposeOfK() {
  constexpr int64_t kHeads = 12, kTokens = 128, kSize = 64;
  std::vector<float> from(kHeads * kTokens * kSize, 1), to(from.size());
  const cpu::Copy copy(
      {{kHeads, kSize, kSize * kTokens}, {kSize, 1, kTokens}, {kTokens, kHeads * kSize, 1}}, 0, 0,
      sizeof(float));
  const double ns = LeastNs([&] { copy.Run(1, from.data(), to.data()); });
  std::printf("%-10s %6.1f us\n", "transpose", ns / 1000);
}

int Main() {
  std::vector<float> x(kRows * kColumns), y(x.size());
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 7919 % 1000) / 100 - 5;
  const cpu::SoftmaxLoops& softmax = cpu::SoftmaxLoopsFor(cpu::InstructionSet());
  PrintPerElement("softmax", LeastNs([&] { softmax.rows(x.data(), y.data(), kRows, kColumns); }));
  TimeOperator("exp", "exp(x)", x, y);
  TimeOperator("tanh", "tanh(x)", x, y);
  TimeOperator("erf", "erf(x)", x, y);
  TimeOperator("sigmoid", "sigmoid(x)", x, y);
  TimeOperator("gelu", "gelu(x)", x, y);
  TimeTransposeOfK();
  return 0;
}

}  // namespace
}  // namespace ag

int main() { return ag::Main(); }
