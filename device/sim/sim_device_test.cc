#include "device/sim/sim_device.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/time.h>

#include <cmath>
#include <map>
#include <set>

#include "device/api/lost_device.h"
#include "graph/reference/evaluate.h"
#include "graph/text_form.h"
#include "plan/fusion/grouping.h"
#include "plan/schedule/planner.h"

namespace ag {
namespace {

constexpr std::string_view kSpec = R"(
name test
dtypes f32,bool,i64
cores 4
streams_max 4
flops_per_second 1e10
bytes_per_second 1e10
launch_ns 1000
event_ns 100
pattern conv = Conv [Relu] layouts plain
pattern dense = MatMul [Add] [Relu] layouts plain
pattern chain = {elementwise}+ max 16 layouts any
pattern other = Softmax|LayerNorm|BatchNorm|{movement}|{reduction}|{pooling} layouts plain
)";

constexpr std::string_view kBranches = R"(
input x f32[64,64]
w = const f32[64,64] seed 1
v = const f32[64,64] seed 2
a = softmax(matmul(x, w)) axis=1
b = relu(matmul(x, v))
output y = add(a, b)
)";

struct Built {
  std::unique_ptr<Device> device;
  Graph graph;
  Plan plan;
  std::unique_ptr<Executable> executable;
  MemoryWeights weights;
  std::vector<Tensor> inputs, outputs;
};

// Null `plan`: the one that is made for the device.
std::unique_ptr<Built> Build(std::string_view extra, int streams = 1, const Plan* plan = nullptr) {
  auto built = std::make_unique<Built>();
  built->device = *OpenSimDevice(std::string(kSpec) + std::string(extra));
  built->graph = *ParseGraph(kBranches, &built->weights);
  const DeviceSpec& spec = built->device->spec();
  RooflineTimes times(spec);
  built->plan = plan != nullptr ? *plan : *MakePlan(built->graph, spec, {}, times, {}, streams);
  built->executable = *built->device->Build({built->graph, built->plan, built->weights});
  built->inputs = {RandomTensor({DType::kFloat32, {64, 64}}, 1)};
  built->outputs = {Tensor::Zeros({DType::kFloat32, {64, 64}})};
  return built;
}

int64_t TimeOf(Built& built) {
  return std::llround(*built.executable->Time({built.inputs, built.outputs}));
}

TEST(SimDevice, ComputesByTheReference) {
  const auto built = Build("");
  ASSERT_TRUE(built->executable->Run(built->inputs, built->outputs).ok());
  const auto expected = *Evaluate(built->graph, built->inputs, built->weights);
  EXPECT_EQ(built->outputs[0].bytes(), expected[0].bytes());
  EXPECT_TRUE(built->device->simulated());
}

// Each product has one block, and is faster in four parts: 2,048 ns for loading a quarter of 8,192
// bytes, 200 for adding up and 819.2 for moving the parts, 1,050 fixed. So it wants all four cores,
// and two beside each other have half of them.
TEST(SimDevice, SplitSumsTakeTheCoresOfTheirBlocks) {
  const auto device = *OpenSimDevice(std::string(kSpec) +
                                     "block_outputs 256\ncore_bytes_per_second 1e9\n"
                                     "contraction_ns 50\nsplit_ns 200\n");
  MemoryWeights weights;
  const Graph graph = *ParseGraph(
      "input x f32[16,64]\nw = const f32[64,16] seed 1\nv = const f32[64,16] seed 2\n"
      "output a = matmul(x, w)\noutput b = matmul(x, v)\n",
      &weights);
  for (const auto& [streams, ns] : {std::pair(1, 2 * 4117.2), std::pair(2, 4117.2 / 0.5)}) {
    RooflineTimes times(device->spec());
    const TimedPlan made = *MakeTimedPlan({graph, device->spec(), {}, {}, streams}, times);
    EXPECT_EQ(static_cast<int>(made.plan.streams.size()), streams);
    EXPECT_NEAR(made.makespan_ns, ns, 1e-6);
    const auto executable = *device->Build({graph, made.plan, weights});
    EXPECT_EQ(*executable->Time({}), std::round(ns));
    EXPECT_EQ(executable->active_cores(0), 4);
  }
}

TEST(SimDevice, TimesAreTheSpecsAndRepeat) {
  const auto a = Build(""), b = Build("");
  EXPECT_EQ(TimeOf(*a), TimeOf(*b));
  EXPECT_EQ(TimeOf(*a), TimeOf(*a));
  EXPECT_EQ(a->device->environment(), b->device->environment());
  EXPECT_TRUE(a->device->environment().starts_with("device=sim:test;policy=2;spec="));
  const auto slow = Build("drift 0.5\n");
  EXPECT_NE(slow->device->environment(), a->device->environment());
}

// kSpec has no cache; this one has a fast cache that holds everything.
TEST(SimDevice, AColdRunTakesItsBytesFromMemory) {
  constexpr char kCache[] = "cache_bytes 1000000\ncache_bytes_per_second 1e12\n";
  const auto plain = Build(""), cached = Build(kCache, 1, &plain->plan);
  EXPECT_LT(TimeOf(*cached), TimeOf(*plain));
  const auto cold = [](Built& built) {
    return built.executable->Time({built.inputs, built.outputs, 1, Caches::kEvicted});
  };
  EXPECT_NEAR(*cold(*cached), static_cast<double>(TimeOf(*plain)), 1);
  EXPECT_NEAR(*cold(*plain), static_cast<double>(TimeOf(*plain)), 1);
  const auto cannot = Build("cold_cache no\n");
  EXPECT_EQ(ToString(cold(*cannot).status()),
            "UNIMPLEMENTED: test: cold_cache: its caches cannot be evicted");
}

TEST(SimDevice, TraceFollowsStreamsAndWaits) {
  const auto built = Build("", 2);
  std::vector<TraceEvent> trace;
  const double ns =
      *built->executable->Time({built->inputs, built->outputs, 1, Caches::kAsLeft, &trace});
  std::map<int, Nanos> stream_end;
  int streams = 0;
  for (const TraceEvent& event : trace) {
    streams = std::max(streams, event.stream + 1);
    EXPECT_GE(event.begin, stream_end[event.stream]);
    EXPECT_GT(event.end, event.begin);
    stream_end[event.stream] = event.end;
  }
  EXPECT_EQ(streams, 2);
  EXPECT_EQ(static_cast<double>(std::ranges::max(trace, {}, &TraceEvent::end).end.count()), ns);
}

// Returns each kernel's time over the estimate, group by group.
std::vector<double> KernelsOverEstimate(const Built& built) {
  const DeviceSpec& spec = built.device->spec();
  RooflineTimes times(spec);
  const std::vector<Group> groups = *FormGroups(built.graph, spec, {}, times);
  std::vector<double> ratios;
  for (const Group& group : groups) {
    const GroupProblem problem = ExtractGroup(built.graph, group, {});
    const std::vector<std::string> kernels = *built.device->Kernels(problem);
    for (const std::string& kernel : kernels) {
      Plan plan = SingleGroupPlan(problem);
      plan.groups[0].kernel = kernel;
      const auto executable = *built.device->Build({problem.graph, plan, SyntheticWeights()});
      ratios.push_back(*executable->Time({}) / RooflineNs(problem, spec));
    }
  }
  return ratios;
}

TEST(SimDevice, KernelsTakeTheEstimate) {
  const std::vector<double> ratios = KernelsOverEstimate(*Build(""));
  EXPECT_GE(ratios.size(), 4u);
  for (const double ratio : ratios) EXPECT_NEAR(ratio, 1, 1e-3);
}

TEST(SimDevice, ScatteredKernelsDifferByProblem) {
  const std::vector<double> ratios = KernelsOverEstimate(*Build("scatter 0.5\n"));
  const std::set<double> different(ratios.begin(), ratios.end());
  EXPECT_GT(different.size(), ratios.size() / 2) << "of a group's two kernels one is faster";
  for (const double ratio : ratios) {
    EXPECT_GE(ratio, 0.999);
    EXPECT_LE(ratio, 1.501);
  }
}

TEST(SimDevice, NoiseScattersAndIsSeeded) {
  const auto a = Build("noise gaussian 0.05\nseed 3\n"), b = Build("noise gaussian 0.05\nseed 3\n");
  const auto c = Build("noise gaussian 0.05\nseed 4\n");
  const int64_t first = TimeOf(*a);
  EXPECT_EQ(first, TimeOf(*b));
  EXPECT_NE(first, TimeOf(*c));
  double sum = 0, squares = 0;
  constexpr int kRuns = 2000;
  for (int i = 0; i < kRuns; ++i) {
    const double x = std::log(static_cast<double>(TimeOf(*a)));
    sum += x;
    squares += x * x;
  }
  const double mean = sum / kRuns;
  EXPECT_NEAR(std::sqrt(squares / kRuns - mean * mean), 0.05, 0.005);
}

TEST(SimDevice, DriftMovesRunsAndCanaryAlike) {
  const auto built = Build("drift 0.1\n");
  const double run = static_cast<double>(TimeOf(*built));
  const double canary = static_cast<double>((*built->device->Canary()).count());
  for (int i = 0; i < 12'000; ++i) ASSERT_TRUE(built->device->Canary().ok());
  EXPECT_NEAR(static_cast<double>(TimeOf(*built)) / run, 1.1, 0.002);
  EXPECT_NEAR(static_cast<double>((*built->device->Canary()).count()) / canary, 1.1, 0.002);
}

// Two streams of two cores each, which do not slow each other down by the spec.
TEST(SimDevice, OverlapIsHowStreamsShareTheDevice) {
  const int64_t one_stream = TimeOf(*Build(""));
  const int64_t full = TimeOf(*Build("", 2));
  EXPECT_EQ(TimeOf(*Build("overlap 1\n", 2)), full);
  EXPECT_EQ(TimeOf(*Build("overlap 2\n", 2)), full);
  int64_t before = full;
  for (const char* overlap : {"0.8", "0.4", "0"}) {
    const int64_t now = TimeOf(*Build(fmt::format("overlap {}\n", overlap), 2));
    EXPECT_GT(now, before) << overlap;
    before = now;
    EXPECT_EQ(TimeOf(*Build(fmt::format("overlap {}\n", overlap))), one_stream);
  }
}

TEST(SimDevice, FaultWrong) {
  const auto built = Build("fault wrong dense\n");
  ASSERT_TRUE(built->executable->Run(built->inputs, built->outputs).ok());
  const auto expected = *Evaluate(built->graph, built->inputs, built->weights);
  EXPECT_NE(built->outputs[0].bytes(), expected[0].bytes());
}

TEST(SimDevice, FaultSticky) {
  const auto built = Build("fault sticky Softmax\n");
  EXPECT_TRUE(built->device->Canary().ok());
  const Status status = built->executable->Run(built->inputs, built->outputs).status();
  EXPECT_EQ(ToString(status), "UNAVAILABLE: test: sticky error, open the device anew");
  EXPECT_TRUE(IsLostDevice(status));
  EXPECT_EQ(built->device->Canary().status(), status);
}

TEST(SimDevice, FaultElsewhereDoesNothing) {
  const auto built = Build("fault crash conv\nfault hang LayerNorm\n");
  EXPECT_TRUE(built->executable->Run(built->inputs, built->outputs).ok());
}

TEST(SimDeviceDeathTest, FaultCrashAndHang) {
  const auto crash = Build("fault crash Softmax\n");
  EXPECT_EXIT((void)crash->executable->Run(crash->inputs, crash->outputs),
              testing::KilledBySignal(SIGABRT), "");
  const auto hang = Build("fault hang dense\n");
  const auto run_with_alarm = [&] {
    const itimerval timer{{0, 0}, {0, 50'000}};
    setitimer(ITIMER_REAL, &timer, nullptr);
    (void)hang->executable->Run(hang->inputs, hang->outputs);
  };
  EXPECT_EXIT(run_with_alarm(), testing::KilledBySignal(SIGALRM), "");
}

TEST(SimDevice, RefusesBadLines) {
  const struct {
    const char* line;
    const char* message;
  } kCases[] = {
      {"fault explode conv",
       "fault: expected crash, hang, wrong or sticky and a target, got \"explode conv\""},
      {"fault crash", "fault: expected crash, hang, wrong or sticky and a target, got \"crash\""},
      {"fault crash Nothing", "fault: \"Nothing\" is neither a pattern nor an operator"},
      {"noise pink 1", "noise: expected gaussian or heavy-tail and a fraction, got \"pink 1\""},
      {"noise gaussian 7", "noise: expected a number in [0, 1], got \"7\""},
      {"drift -1", "drift: expected a number in [0, 100], got \"-1\""},
      {"scatter -1", "scatter: expected a number in [0, 100], got \"-1\""},
      {"overlap 3", "overlap: expected a number in [0, 2], got \"3\""},
      {"seed x", "seed: expected a number in [0, 1000000000000000], got \"x\""},
  };
  for (const auto& c : kCases) {
    const auto device = OpenSimDevice(std::string(kSpec) + c.line);
    EXPECT_EQ(Message(device.status()), c.message);
  }
}

}  // namespace
}  // namespace ag
