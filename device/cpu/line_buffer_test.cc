// The kernel "line_buffer" against the reference: windows, strides, paddings, channels that fill
// their vectors and some that do not, in each layout, on one core and on several.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "device/cpu/cpu_device.h"
#include "device/cpu/kernel.h"
#include "device/cpu/loops_testing.h"
#include "graph/reference/evaluate.h"
#include "graph/text_form.h"
#include "plan/equivalence.h"
#include "plan/fusion/group_problem.h"

namespace ag {
namespace {

GroupProblem Problem(const Graph& graph, Layout in, Layout out, int cores) {
  return {.graph = graph,
          .pattern = "expansion",
          .input_layouts = {in},
          .output_layouts = std::vector<Layout>(graph.outputs().size(), out),
          .cores = cores};
}

void Check(const std::string& text, Layout in, Layout out, int cores) {
  SCOPED_TRACE(text + " " + std::string(LayoutName(in)) + " " + std::string(LayoutName(out)) + " " +
               std::to_string(cores));
  const std::unique_ptr<Device> device = *OpenCpuDevice({.cores = cores});
  MemoryWeights weights;
  const Graph graph = *ParseGraph(text, &weights);
  Plan plan = SingleGroupPlan(Problem(graph, in, out, cores));
  plan.groups[0].kernel = "line_buffer";
  const auto executable = device->Build({graph, plan, weights});
  ASSERT_TRUE(executable.ok()) << Message(executable.status());
  const std::vector<Tensor> inputs = {RandomTensor(graph.type({graph.inputs()[0], 0}), 3)};
  const auto expected = Evaluate(graph, inputs, weights);
  ASSERT_TRUE(expected.ok()) << Message(expected.status());
  std::vector<Tensor> outputs;
  for (const Tensor& output : *expected) outputs.push_back(Tensor::Zeros(output.type()));
  for (int run = 0; run < 2; ++run) {
    ASSERT_TRUE((*executable)->Run(inputs, outputs).ok());
    for (size_t i = 0; i < outputs.size(); ++i) {
      EXPECT_TRUE(IsEquivalent(CompareTensors("y", (*expected)[i], outputs[i]), 1e-5)) << i;
    }
  }
}

struct Form {
  int64_t images, inner, channels, height, width;
  std::string taps, window, expand_after = "c", window_after = "d";
  std::string outputs = "";  // In the place of the last operator's.
};

std::string TextOf(const Form& f) {
  const bool is_bare = f.expand_after == "c";
  return fmt::format(
      "input x f32[{},{},{},{}]\n"
      "c = conv(x, const f32[{},{},1,1] seed 1, const f32[{}] seed 2) strides=[1,1] "
      "pads=[0,0,0,0] dilations=[1,1]\n"
      "{}"
      "d = conv({}, const f32[{},1,{}] seed 3, const f32[{}] seed 4) group={} {}\n"
      "{}\n",
      f.images, f.inner, f.height, f.width, f.channels, f.inner, f.channels,
      is_bare ? "" : "e = " + f.expand_after + "\n", is_bare ? "c" : "e", f.channels, f.taps,
      f.channels, f.channels, f.window, f.outputs.empty() ? "output " + f.window_after : f.outputs);
}

void CheckForm(const Form& form) {
  const std::string text = TextOf(form);
  for (const auto& [in, out] : {std::pair(Layout::kChannelsLast, Layout::kChannelsLast),
                                {cpu::BlockedLayout(), cpu::BlockedLayout()},
                                {cpu::BlockedLayout(), Layout::kChannelsLast},
                                {Layout::kChannelsLast, cpu::BlockedLayout()}}) {
    for (const int cores : {1, 2}) {
      if (cores <= (*OpenCpuDevice())->spec().cores) Check(text, in, out, cores);
    }
  }
}

constexpr std::string_view kSame3 = "strides=[1,1] pads=[1,1,1,1] dilations=[1,1]";

TEST(LineBuffer, WindowsOfEverySize) {
  for (const Form& form :
       {Form{1, 16, 64, 9, 9, "3,3", std::string(kSame3)},
        {3, 24, 72, 8, 10, "3,3", "strides=[2,2] pads=[1,1,1,1] dilations=[1,1]"},
        {1, 40, 120, 14, 14, "5,5", "strides=[1,1] pads=[2,2,2,2] dilations=[1,1]"},
        {2, 20, 120, 7, 5, "5,5", "strides=[2,2] pads=[1,2,2,1] dilations=[1,1]"},
        {1, 32, 16, 1, 1, "3,3", std::string(kSame3)},
        {1, 17, 33, 12, 19, "3,3", "strides=[1,1] pads=[0,0,0,0] dilations=[2,3]"},
        {2, 16, 130, 11, 6, "1,7", "strides=[1,1] pads=[0,3,0,3] dilations=[1,1]"},
        {1, 16, 48, 13, 13, "2,2", "strides=[4,3] pads=[0,0,0,0] dilations=[1,1]"},
        {1, 16, 48, 5, 5, "3,3", "strides=[1,1] pads=[4,4,4,4] dilations=[1,1]"},
        {2, 300, 96, 6, 6, "3,3", std::string(kSame3)}}) {
    CheckForm(form);
  }
}

// Channels that do not fill their blocks: what follows keeps zeros.
TEST(LineBuffer, WhatFollowsTheConvolutions) {
  const std::string same(kSame3);
  for (const auto& [after_expand, after_window] :
       {std::pair("relu(c)", "relu(d)"),
        {"hard_swish(c)", "hard_swish(d)"},
        {"clip(c) min=0 max=0.5", "clip(d) min=-0.25 max=0.25"},
        {"swish(c)", "swish(d)"},
        {"c", "gelu(d) approximate=none"},
        {"gelu(c) approximate=none", "d"},
        {"relu(c)", "d"}}) {
    CheckForm({1, 16, 72, 7, 7, "3,3", same, after_expand, after_window});
    CheckForm({1, 16, 64, 7, 9, "3,3", same, after_expand, after_window});
  }
  CheckForm({1, 16, 64, 7, 9, "3,3", same, "sigmoid(c)", "sigmoid(d)"});
  CheckForm({1, 16, 64, 7, 9, "3,3", same, "hard_sigmoid(c) alpha=0.2 beta=0.5", "tanh(d)"});
}

// With and without the image itself, which the mean is made of.
TEST(LineBuffer, MeansOfChannels) {
  const std::string same(kSame3), mean = "reduce_mean(a) axes=[2,3] keepdims=1\n";
  for (const std::string after : {"relu(d)", "hard_swish(d)", "swish(d)"}) {
    for (const std::string outputs : {"output m = ", "output a\noutput m = "}) {
      const std::string tail = "a = " + after + "\n" + outputs + mean;
      CheckForm({1, 16, 72, 7, 9, "3,3", same, "relu(c)", "", tail});
      CheckForm({3, 16, 130, 12, 20, "3,3", "strides=[2,2] pads=[1,1,1,1] dilations=[1,1]",
                 "relu(c)", "", tail});
      CheckForm({2, 16, 16, 21, 5, "5,5", "strides=[1,1] pads=[2,2,2,2] dilations=[1,1]", "relu(c)",
                 "", tail});
    }
  }
  CheckForm({1, 16, 72, 7, 9, "3,3", same, "relu(c)", "",
             "output m = reduce_mean(d) axes=[2,3] keepdims=1\n"});
}

// What lies behind the last channel of a block is zero, whatever lay there before.
TEST(LineBuffer, PaddedChannelsAreZero) {
  constexpr int64_t kChannels = 18;
  MemoryWeights weights;
  const Graph graph = *ParseGraph(
      TextOf({1, 16, kChannels, 3, 5, "3,3", std::string(kSame3), "relu(c)", "relu(d)"}), &weights);
  const Layout layout = cpu::BlockedLayout();
  const Plan plan = SingleGroupPlan(Problem(graph, layout, layout, 1));
  Constants constants(graph, weights);
  const Group& group = plan.groups[0];
  const auto kernel =
      cpu::MakeKernel({.graph = graph, .group = group, .constants = &constants}, "line_buffer");
  ASSERT_TRUE(kernel.ok()) << Message(kernel.status());
  const TensorType& result = graph.type(group.outputs[0].edge);
  const auto floats = static_cast<int64_t>(LayoutBytes(result, layout) / sizeof(float));
  const cpu::Waves x(16 * 3 * 5, 1), y(floats, 2),
      scratch(static_cast<int64_t>((*kernel)->scratch_bytes() / sizeof(float)) + 1, 3);
  const void* inputs[] = {x.data()};
  void* outputs[] = {y.data()};
  ASSERT_TRUE((*kernel)
                  ->Run({.scratch = reinterpret_cast<std::byte*>(scratch.data())}, inputs, outputs)
                  .ok());
  const int64_t block = BlockOf(layout), pixels = 3 * 5;
  for (int64_t i = 0; i < floats; ++i) {
    const int64_t channel = i / (pixels * block) * block + i % block;
    if (channel >= kChannels) {
      ASSERT_EQ(y.data()[i], 0) << i;
    }
  }
}

TEST(LineBuffer, LeavesOtherTypesAndPlainPorts) {
  const std::unique_ptr<Device> device = *OpenCpuDevice({.cores = 1});
  const auto has = [&](const std::string& text, Layout layout) {
    const Graph graph = *ParseGraph(text);
    const auto names = device->Kernels(Problem(graph, layout, layout, 1));
    return names.ok() && std::ranges::count(*names, "line_buffer") > 0;
  };
  std::string text = TextOf({1, 16, 32, 7, 7, "3,3", std::string(kSame3), "relu(c)"});
  EXPECT_TRUE(has(text, Layout::kChannelsLast));
  EXPECT_FALSE(has(text, Layout::kPlain));
  for (size_t at = text.find("f32"); at != text.npos; at = text.find("f32")) {
    text.replace(at, 3, "f64");
  }
  EXPECT_FALSE(has(text, Layout::kChannelsLast));
}

}  // namespace
}  // namespace ag
