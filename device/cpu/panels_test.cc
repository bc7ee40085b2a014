// The kernel "panels" against the reference: matrix products and convolutions in each layout, with
// what may follow them, on one core and on several.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "device/cpu/cpu_device.h"
#include "device/cpu/host.h"
#include "device/cpu/loops_testing.h"
#include "graph/reference/evaluate.h"
#include "graph/text_form.h"
#include "plan/equivalence.h"
#include "plan/fusion/group_problem.h"

namespace ag {
namespace {

struct PanelsCase {
  std::string name, text;
  Layout in = Layout::kPlain, out = Layout::kPlain;
};

GroupProblem PanelsProblem(const PanelsCase& c, const Graph& graph, int cores) {
  GroupProblem problem{.graph = graph, .cores = cores};
  const bool is_scaled = c.text.find("mul(x, s)") != c.text.npos;
  problem.pattern = c.text.find("conv(") == c.text.npos ? "dense" : is_scaled ? "scaled" : "conv";
  problem.input_layouts.assign(graph.inputs().size(), c.out);
  problem.input_layouts[0] = c.in;
  problem.output_layouts = {c.out};
  return problem;
}

bool HasPanels(Device& device, const GroupProblem& problem) {
  const auto names = device.Kernels(problem);
  return names.ok() && std::ranges::count(*names, "panels") == 1;
}

// Runs the kernel on inputs of random numbers, with a NaN in the first one.
void CheckPanels(const PanelsCase& c, int cores) {
  SCOPED_TRACE(c.name + " " + std::string(LayoutName(c.in)) + " " + std::string(LayoutName(c.out)) +
               " " + std::to_string(cores));
  const std::unique_ptr<Device> device = *OpenCpuDevice({.cores = cores});
  MemoryWeights weights;
  const Graph graph = *ParseGraph(c.text, &weights);
  const GroupProblem problem = PanelsProblem(c, graph, cores);
  ASSERT_TRUE(HasPanels(*device, problem));
  Plan plan = SingleGroupPlan(problem);
  plan.groups[0].kernel = "panels";
  const auto executable = device->Build({graph, plan, weights});
  ASSERT_TRUE(executable.ok()) << Message(executable.status());
  std::vector<Tensor> inputs;
  for (const NodeId id : graph.inputs()) {
    inputs.push_back(RandomTensor(graph.type({id, 0}), 3 + inputs.size()));
  }
  inputs[0].Put(inputs[0].type().NumElements() - 1, std::nan(""));
  const auto expected = Evaluate(graph, inputs, weights);
  ASSERT_TRUE(expected.ok()) << Message(expected.status());
  std::vector<Tensor> outputs = {Tensor::Zeros(expected->front().type())};
  ASSERT_TRUE((*executable)->Run(inputs, outputs).ok());
  int64_t wrong = 0;
  for (int64_t i = 0; i < outputs[0].type().NumElements(); ++i) {
    const double a = expected->front().At(i), b = outputs[0].At(i);
    const bool fits = std::isnan(a) ? std::isnan(b) : std::abs(a - b) <= 1e-5 * (4 + std::abs(a));
    if (!fits) ++wrong;
  }
  EXPECT_EQ(wrong, 0);
}

// With SSE no layout has blocks of the loops' vectors.
void CheckOnCores(const PanelsCase& c) {
  const bool is_blocked = c.in == Layout::kBlocked8 || c.out == Layout::kBlocked8;
  if (cpu::InstructionSet() == "sse41" && is_blocked) return;
  for (const int cores : {1, 2}) {
    if (cores <= (*OpenCpuDevice())->spec().cores) CheckPanels(c, cores);
  }
}

// Rows by inner sizes by columns: less than a tile, whole ones, several blocks and chunks.
TEST(Panels, ProductsOfEverySize) {
  for (const auto& [rows, inner, columns] : {std::tuple(1, 1, 1),
                                             {1, 1100, 9},
                                             {1, 70, 33},
                                             {7, 5, 48},
                                             {8, 192, 16},
                                             {9, 193, 50},
                                             {49, 400, 130},
                                             {130, 1030, 30},
                                             {2100, 70, 40},
                                             {300, 3000, 400}}) {
    CheckOnCores(
        {"product", fmt::format("input x f32[{},{}]\noutput matmul(x, const f32[{},{}] seed 1)\n",
                                rows, inner, inner, columns)});
  }
  CheckOnCores({"batch", "input x f32[2,3,5,20]\noutput matmul(x, const f32[20,35] seed 1)\n"});
}

TEST(Panels, ProductsWithWhatFollows) {
  const std::string product =
      "input x f32[21,40]\np = matmul(x, const f32[40,50] seed 1)\n"
      "b = const f32[50] seed 2\n";
  for (const std::string tail :
       {"output add(p, b)", "output add(b, p)", "output relu(add(p, b))",
        "output add(add(p, b), r)", "output add(r, p)", "output gelu(add(p, b)) approximate=none",
        "output clip(p) min=-0.25 max=0.5", "output relu(add(add(p, b), r))",
        "output mul(sigmoid(add(p, b)), r)", "output mul(relu(p), r)",
        "output mul(swish(add(add(p, b), r)), r)"}) {
    const bool has_residual = tail.find(", r)") != tail.npos || tail.find("(r,") != tail.npos;
    CheckOnCores({tail, product + (has_residual ? "input r f32[21,50]\n" : "") + tail + "\n"});
  }
}

std::string ConvolutionText(const std::string& x, const std::string& w, const std::string& form,
                            const std::string& tail) {
  return fmt::format(
      "input x f32[{}]\nc = conv(x, const f32[{}] seed 1, const f32[{}] seed 2) {}\n{}\n", x, w,
      w.substr(0, w.find(',')), form, tail);
}

constexpr std::string_view kOneTap = "strides=[1,1] pads=[0,0,0,0] dilations=[1,1]";

TEST(Panels, ConvolutionsInEveryLayout) {
  struct Form {
    const char *x, *w, *form;
  };
  for (const Form& f :
       {Form{"1,32,6,7", "48,32,1,1", "strides=[1,1] pads=[0,0,0,0] dilations=[1,1]"},
        {"3,24,5,5", "20,24,1,1", "strides=[1,1] pads=[0,0,0,0] dilations=[1,1]"},
        {"2,32,9,8", "64,32,1,1", "strides=[2,2] pads=[0,0,0,0] dilations=[1,1]"},
        {"2,16,5,6", "32,16,1,1", "strides=[1,2] pads=[1,0,0,2] dilations=[1,1]"},
        {"2,16,7,7", "48,16,3,3", "strides=[2,2] pads=[1,1,1,1] dilations=[1,1]"},
        {"1,20,8,8", "40,20,1,7", "strides=[1,1] pads=[0,3,0,3] dilations=[1,1]"},
        {"1,200,5,5", "24,200,3,2", "strides=[1,1] pads=[2,0,2,1] dilations=[2,1]"}}) {
    for (const auto& [in, out] : {std::pair(Layout::kChannelsLast, Layout::kChannelsLast),
                                  {cpu::BlockedLayout(), cpu::BlockedLayout()},
                                  {cpu::BlockedLayout(), Layout::kChannelsLast},
                                  {Layout::kChannelsLast, cpu::BlockedLayout()}}) {
      CheckOnCores({f.x, ConvolutionText(f.x, f.w, f.form, "output c"), in, out});
    }
  }
}

// With channels that fill their blocks, and with some that do not, whose padding stays zero.
TEST(Panels, ConvolutionsWithWhatFollows) {
  for (const std::string channels : {"32", "20"}) {
    const std::string x = "2,32,5,5", w = channels + ",32,1,1";
    const std::string residual = "input r f32[2," + channels + ",5,5]\n";
    for (const std::string tail : {"output relu(c)", "output sigmoid(c)", "output swish(c)",
                                   "output clip(c) min=0.1 max=0.3"}) {
      for (const Layout layout : {Layout::kChannelsLast, cpu::BlockedLayout()}) {
        CheckOnCores({tail, ConvolutionText(x, w, std::string(kOneTap), tail), layout, layout});
      }
    }
    for (const std::string tail :
         {"output add(c, r)", "output relu(add(r, c))", "output sigmoid(add(c, r))"}) {
      for (const Layout layout : {Layout::kChannelsLast, cpu::BlockedLayout()}) {
        CheckOnCores(
            {tail, ConvolutionText(x, w, std::string(kOneTap), residual + tail), layout, layout});
      }
    }
  }
}

TEST(Panels, ImagesTimesANumberAChannel) {
  for (const auto& [images, inner, channels, size] :
       {std::tuple(1, 32, 16, 7), {1, 72, 40, 5}, {3, 24, 32, 3}, {2, 300, 20, 4}}) {
    const std::string x = fmt::format(
        "input x f32[{0},{1},{3},{3}]\ninput s f32[{0},{1},1,1]\ny = mul(x, s)\n"
        "c = conv(y, const f32[{2},{1},1,1] seed 1, const f32[{2}] seed 2) {4}\n",
        images, inner, channels, size, kOneTap);
    const std::string residual =
        fmt::format("input r f32[{0},{1},{2},{2}]\n", images, channels, size);
    for (const Layout layout : {Layout::kChannelsLast, cpu::BlockedLayout()}) {
      CheckOnCores({"alone", x + "output c\n", layout, layout});
      CheckOnCores({"relu", x + "output relu(c)\n", layout, layout});
      CheckOnCores({"residual", x + residual + "output relu(add(c, r))\n", layout, layout});
    }
  }
}

// Many pixels of several taps, groups, other types and weights that are no constants are left to
// other kernels.
TEST(Panels, LeavesTheRest) {
  const std::unique_ptr<Device> device = *OpenCpuDevice({.cores = 1});
  const Layout last = Layout::kChannelsLast;
  const std::string groups = std::string(kOneTap) + " group=2";
  const std::string window = "strides=[1,1] pads=[1,1,1,1] dilations=[1,1]";
  for (const PanelsCase& c :
       {PanelsCase{"weights", "input x f32[4,8]\ninput w f32[8,8]\noutput matmul(x, w)\n"},
        {"type", "input x f64[4,8]\noutput matmul(x, const f64[8,8] seed 1)\n"},
        {"matrices", "input x f32[2,4,8]\noutput matmul(x, const f32[2,8,8] seed 1)\n"},
        {"left", "input x f32[8,4]\noutput matmul(const f32[4,8] seed 1, x)\n"},
        {"groups", ConvolutionText("1,32,4,4", "32,16,1,1", groups, "output c"), last, last},
        {"plain", ConvolutionText("1,32,4,4", "32,32,1,1", std::string(kOneTap), "output c")},
        {"window", ConvolutionText("1,32,12,12", "32,32,3,3", window, "output c"), last, last}}) {
    const Graph graph = *ParseGraph(c.text);
    EXPECT_FALSE(HasPanels(*device, PanelsProblem(c, graph, 1))) << c.name;
  }
}

}  // namespace
}  // namespace ag
