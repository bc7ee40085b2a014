// Steps of a chain that are joined into one loop give the same bits as one after the other.
#include "device/cpu/chain.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "base/random.h"
#include "device/cpu/block_ops.h"
#include "device/cpu/cpu_device.h"
#include "graph/reference/evaluate.h"
#include "graph/text_form.h"
#include "plan/equivalence.h"
#include "plan/fusion/group_problem.h"

namespace ag {
namespace {

using cpu::BlockOp;

// Returns the operator of a call of x and y.
BlockOp<float> OpOf(const std::string& call) {
  const Graph graph =
      *ParseGraph("input x f32[8]\ninput y f32[8]\noutput " + call + "\noutput neg(y)");
  return cpu::BlockOpOf<float>(graph.node(graph.outputs()[0].edge.node));
}

TEST(ChainSteps, JoinedOnesGiveTheSameBits) {
  constexpr int64_t kElements = 1003;
  constexpr float kInf = std::numeric_limits<float>::infinity();
  Random random(5);
  std::vector<float> a, b, c;
  for (int64_t i = 0; i < kElements; ++i) {
    for (std::vector<float>* v : {&a, &b, &c}) {
      v->push_back(static_cast<float>(3 * random.Normal()));
    }
  }
  const float odd[] = {0.0f, -0.0f, kInf, -kInf, std::nanf(""), 3e38f, -3e38f, 1e-40f};
  for (size_t i = 0; i < std::size(odd); ++i) {
    for (size_t j = 0; j < std::size(odd); ++j) {
      a[i * std::size(odd) + j] = odd[i];
      b[i * std::size(odd) + j] = odd[j];
    }
  }
  int joined_ops = 0;
  const std::vector<std::string> firsts = {"mul(x, y)", "add(x, y)", "sub(x, y)"};
  const std::vector<std::string> seconds = {"add(x, y)",     "relu(x)",   "clip(x) min=-1 max=2",
                                            "hard_swish(x)", "mul(x, y)", "gelu(x)"};
  for (const std::string& first_text : firsts) {
    for (const std::string& second_text : seconds) {
      const BlockOp<float> first = OpOf(first_text), second = OpOf(second_text);
      const auto joined = cpu::JoinedOp(first, second);
      if (!joined) continue;
      ++joined_ops;
      std::vector<float> made(kElements), expected(kElements), got(kElements);
      first.run(a.data(), b.data(), b.data(), made.data(), kElements, first.p, first.q);
      second.run(made.data(), c.data(), c.data(), expected.data(), kElements, second.p, second.q);
      joined->run(a.data(), b.data(), c.data(), got.data(), kElements, joined->p, joined->q);
      for (size_t i = 0; i < kElements; ++i) {
        if (std::isnan(expected[i]) && std::isnan(got[i])) continue;
        ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(expected[i]))
            << first_text << " then " << second_text << " of " << a[i] << " " << b[i];
      }
    }
  }
  EXPECT_EQ(joined_ops, 6);
}

// What is read twice, or written, is made all the same.
TEST(ChainSteps, AreJoinedOnlyForOneReader) {
  const auto device = *OpenCpuDevice({.cores = 1});
  for (const char* text :
       {"output o0 = relu(add(mul(i0, i1), i0))", "output o0 = relu(add(i0, mul(i1, i0)))",
        "m = mul(i0, i1)\noutput o0 = relu(add(m, m))",
        "m = mul(i0, i1)\noutput o0 = relu(add(m, i1))\noutput o1 = sigmoid(m)",
        "m = mul(i0, i1)\noutput o0 = relu(add(m, i1))\noutput o1 = m",
        "s = add(i0, i1)\noutput o0 = relu(s)\noutput o1 = mul(s, clip(s) min=-1 max=1)",
        "output o0 = hard_swish(add(mul(i0, i0), i1))",
        "output o0 = clip(sub(add(i0, i1), mul(i0, i1))) min=-0.5 max=0.5",
        "h = add(i0, i1)\noutput o0 = h\noutput o1 = rms_norm(h, const f32[700] seed 1) axis=1",
        "h = mul(i0, exp(i1))\noutput o0 = rms_norm(h, const f32[700] seed 1) axis=1"}) {
    GroupProblem problem;
    problem.graph = *ParseGraph(std::string("input i0 f32[3,700]\ninput i1 f32[3,700]\n") + text);
    const bool has_norm = std::string_view(text).find("norm") != std::string_view::npos;
    problem.pattern = has_norm ? "chain_norm" : "chain";
    problem.input_layouts = {Layout::kPlain, Layout::kPlain};
    problem.output_layouts.assign(problem.graph.outputs().size(), Layout::kPlain);
    const SyntheticWeights weights;
    const auto executable = device->Build({problem.graph, SingleGroupPlan(problem), weights});
    ASSERT_TRUE(executable.ok()) << text << ": " << Message(executable.status());
    const TensorType type = problem.graph.type({problem.graph.inputs()[0], 0});
    const std::vector<Tensor> inputs = {RandomTensor(type, 3), RandomTensor(type, 4)};
    std::vector<Tensor> outputs;
    for (const GraphOutput& output : problem.graph.outputs()) {
      outputs.push_back(Tensor::Zeros(problem.graph.type(output.edge)));
    }
    ASSERT_TRUE((*executable)->Run(inputs, outputs).ok());
    const auto expected = *Evaluate(problem.graph, inputs, weights);
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(IsEquivalent(CompareTensors("y", expected[i], outputs[i]), 1e-6)) << text;
    }
  }
}

}  // namespace
}  // namespace ag
