// Element-wise passes of the cpu device by the form of their operands, as groups of a plan.
//   build/chain_forms [CORES]     (CORES: 2)
// A line for each case: microseconds of the group, nanoseconds per element, and the same of a copy
// of its input on one core, which computes nothing; medians of 15 blocks of 20 runs each, in turn.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "device/open_device.h"
#include "device/profile/timing_data.h"
#include "graph/text_form.h"
#include "plan/fusion/group_problem.h"
#include "plan/interval.h"

namespace ag {
namespace {

constexpr int kBlocks = 15, kRuns = 20;

struct Case {
  const char* name;
  const char* pattern;
  const char* graph;
  Layout layout = Layout::kPlain;
};

// A vector of 256 channels, read per channel.
#define AG_CHANNELS "const f32[256,1,1] seed "
constexpr const char* kScaleShift =
    "input i0 f32[1,256,56,56]\n"
    "output o0 = relu(add(mul(i0, " AG_CHANNELS "1), " AG_CHANNELS "2))";

#define AG_ROWS "input i0 f32[1,197,768]\ninput i1 f32[1,197,768]\n"
#define AG_NORM "const f32[768] seed 1, const f32[768] seed 2"
#define AG_GATES \
  "input i0 f32[64,512]\ninput i1 f32[64,512]\ninput i2 f32[64,512]\ninput i3 f32[64,512]\n"

constexpr Case kCases[] = {
    {"scale, shift, relu: channels, blocked", "chain", kScaleShift, Layout::kBlocked16},
    {"scale, shift, relu: channels, last", "chain", kScaleShift, Layout::kChannelsLast},
    {"scale, shift, relu: channels, plain", "chain", kScaleShift},
    {"scale by a tensor per channel, blocked", "chain",
     "input i0 f32[1,256,56,56]\ninput i1 f32[1,256,1,1]\noutput o0 = mul(i0, i1)",
     Layout::kBlocked16},
    {"scale by a tensor per channel, last", "chain",
     "input i0 f32[1,256,56,56]\ninput i1 f32[1,256,1,1]\noutput o0 = mul(i0, i1)",
     Layout::kChannelsLast},
    {"add a vector per row", "chain",
     "input i0 f32[1,197,3072]\noutput o0 = add(i0, const f32[3072] seed 1)"},
    {"add a bias, gelu", "chain",
     "input i0 f32[1,197,3072]\noutput o0 = gelu(add(i0, const f32[3072] seed 1))"},
    {"gelu", "chain", "input i0 f32[1,197,3072]\noutput o0 = gelu(i0)"},
    {"scale by a number", "chain",
     "input i0 f32[1,256,56,56]\noutput o0 = mul(i0, const f32 {0.125})"},
    {"add two tensors, relu", "chain",
     "input i0 f32[1,256,56,56]\ninput i1 f32[1,256,56,56]\noutput o0 = relu(add(i0, i1))"},
    {"residual", "chain", AG_ROWS "output o0 = add(i0, i1)"},
    {"norm", "layer_norm",
     "input i0 f32[1,197,768]\n"
     "output o0 = layer_norm(i0, " AG_NORM ") axis=2"},
    {"residual and norm", "chain_norm",
     AG_ROWS "h = add(i0, i1)\noutput o0 = layer_norm(h, " AG_NORM ") axis=2\noutput o1 = h"},
    {"cell: two products and their sum", "chain",
     AG_GATES "output o0 = add(mul(sigmoid(i0), i1), mul(sigmoid(i2), tanh(i3)))"},
    {"cell: its results, with the sum read again", "chain",
     AG_GATES "c = add(mul(sigmoid(i0), i1), mul(sigmoid(i2), tanh(i3)))\n"
              "output o0 = mul(sigmoid(i3), tanh(c))\noutput o1 = c"},
    {"softmax, rows of 197", "softmax", "input i0 f32[12,197,197]\noutput o0 = softmax(i0) axis=2"},
    {"softmax, rows of 49", "softmax", "input i0 f32[192,49,49]\noutput o0 = softmax(i0) axis=2"},
    {"softmax, rows of 1024", "softmax",
     "input i0 f32[12,256,1024]\noutput o0 = softmax(i0) axis=2"},
};

Status TimeCase(const Case& c, int cores, Device& device) {
  GroupProblem problem;
  AG_LET(problem.graph, ParseGraph(c.graph));
  problem.pattern = c.pattern;
  for (size_t i = 0; i < problem.graph.inputs().size(); ++i) {
    const bool is_rank_4 = problem.graph.type(Edge{problem.graph.inputs()[i], 0}).shape.size() == 4;
    problem.input_layouts.push_back(is_rank_4 ? c.layout : Layout::kPlain);
  }
  problem.output_layouts.assign(problem.graph.outputs().size(), c.layout);
  problem.cores = cores;
  const TimingData data;
  AG_LET(const auto group, device.Build({problem.graph, SingleGroupPlan(problem), data}));
  std::vector<Tensor> inputs, outputs;
  data.FillBuffers(problem.graph, &inputs, &outputs);
  std::vector<double> group_ns, copy_ns;
  const std::string_view from = inputs[0].bytes();
  std::vector<char> to(from.size());
  for (int block = 0; block < kBlocks; ++block) {
    AG_LET(const double ns, group->Time({.inputs = inputs, .outputs = outputs, .runs = kRuns}));
    group_ns.push_back(ns);
    const Nanos begin = RealClock().Now();
    for (int run = 0; run < kRuns; ++run) std::memcpy(to.data(), from.data(), from.size());
    copy_ns.push_back(static_cast<double>((RealClock().Now() - begin).count()) / kRuns);
  }
  const auto elements =
      static_cast<double>(problem.graph.type(problem.graph.outputs()[0].edge).NumElements());
  std::printf("%-42s %8.1f us  %6.3f ns/element   copy on one core %8.1f us\n", c.name,
              Median(group_ns) / 1000, Median(group_ns) / elements, Median(copy_ns) / 1000);
  return OkStatus();
}

Status TimeAll(int cores) {
  AG_LET(const auto device, OpenDevice("cpu"));
  for (const Case& c : kCases) AG_TRY(TimeCase(c, cores, *device), "{}", c.name);
  return OkStatus();
}

}  // namespace
}  // namespace ag

int main(int argc, char** argv) {
  const ag::Status status = ag::TimeAll(argc > 1 ? std::atoi(argv[1]) : 2);
  if (!status.ok()) std::fprintf(stderr, "%s\n", ag::Message(status).c_str());
  return status.ok() ? 0 : 1;
}
