#include "device/cpu/cpu_device.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <atomic>
#include <chrono>
#include <cstring>

#include "base/testing/counting_new.h"
#include "device/cpu/host.h"
#include "device/cpu/onednn_threads.h"
#include "device/cpu/team.h"
#include "graph/reference/evaluate.h"
#include "graph/text_form.h"
#include "plan/equivalence.h"
#include "plan/fusion/group_problem.h"
#include "plan/fusion/grouping.h"
#include "plan/schedule/greedy_streams.h"
#include "plan/schedule/planner.h"

namespace ag {
namespace {

struct Built {
  Graph graph;
  Plan plan;
  std::shared_ptr<MemoryWeights> weights = std::make_shared<MemoryWeights>();
  std::unique_ptr<Executable> executable;
  std::vector<Tensor> inputs, outputs;
};

Plan PlanOf(const Device& device, const Graph& graph, int streams) {
  RooflineTimes times(device.spec());
  return *MakePlan(graph, device.spec(), Policy(), times, {}, streams);
}

// Two streams with one core each, whatever the groups would take on all cores.
Plan BesidePlanOf(const Device& device, const Graph& graph) {
  RooflineTimes times(device.spec());
  std::vector<Group> groups = *FormGroups(graph, device.spec(), {}, times);
  std::vector<Stream> streams = GreedyStreams(MakeScheduleProblem(
      graph, groups, std::vector<double>(groups.size(), 1e6), device.spec(), {}, 2));
  return *CompletePlan(graph, std::move(groups), std::move(streams), device.spec(), {});
}

Built BuildPlan(Device& device, Built built) {
  built.executable = *device.Build({built.graph, built.plan, *built.weights});
  for (const NodeId id : built.graph.inputs()) {
    built.inputs.push_back(RandomTensor(built.graph.type({id, 0}), 3));
  }
  for (const GraphOutput& output : built.graph.outputs()) {
    built.outputs.push_back(Tensor::Zeros(built.graph.type(output.edge)));
  }
  return built;
}

Built BuildText(Device& device, std::string_view text, int streams) {
  Built built;
  built.graph = *ParseGraph(text, built.weights.get());
  built.plan = PlanOf(device, built.graph, streams);
  return BuildPlan(device, std::move(built));
}

// Two independent branches of about 10 ms each, so that the wake-up of a thread is short beside
// them.
constexpr std::string_view kTwoBranches = R"(
input x f32[1024,1024]
w = const f32[1024,1024] seed 1
v = const f32[1024,1024] seed 2
output a = relu(matmul(x, w))
output b = relu(matmul(x, v))
)";

TEST(CpuDevice, DescribesItself) {
  const auto device = *OpenCpuDevice({.cores = 1});
  EXPECT_EQ(device->spec().name, "cpu");
  EXPECT_EQ(device->spec().cores, 1);
  EXPECT_TRUE(device->environment().starts_with("cores=1;cpu=")) << device->environment();
  EXPECT_FALSE(device->simulated());
  EXPECT_GT((*device->Canary()).count(), 0);
  EXPECT_LT(*device->Canary(), std::chrono::seconds(10));
}

// A cold run computes the same as any run, with several streams and layouts that are converted.
TEST(CpuDevice, AColdRunIsARun) {
  const auto device = *OpenCpuDevice();
  constexpr std::string_view kSmall =
      "input x f32[1,16,8,8]\nw = const f32[16,16,3,3] seed 1\nv = const f32[16,16,1,1] seed 2\n"
      "k = const f32[16] seed 3\n"
      "output a = relu(conv(x, w, k) strides=[1,1] pads=[1,1,1,1] dilations=[1,1])\n"
      "output b = relu(conv(x, v, k) strides=[1,1] pads=[0,0,0,0] dilations=[1,1])\n";
  for (const int streams : {1, 2}) {
    Built built = BuildText(*device, kSmall, std::min(streams, device->spec().streams_max));
    const auto ns = built.executable->Time({built.inputs, built.outputs, 1, Caches::kEvicted});
    ASSERT_EQ(ToString(ns.status()), "OK");
    EXPECT_GT(*ns, 0);
    std::vector<Tensor> warm;
    for (const Tensor& output : built.outputs) warm.push_back(Tensor::Zeros(output.type()));
    ASSERT_TRUE(built.executable->Run(built.inputs, warm).ok());
    for (size_t i = 0; i < warm.size(); ++i) EXPECT_EQ(built.outputs[i].bytes(), warm[i].bytes());
  }
  std::vector<Tensor> none;
  Built built = BuildText(*device, kSmall, 1);
  EXPECT_EQ(Message(built.executable->Time({none, none, 1, Caches::kEvicted}).status()),
            "run: expected 1 inputs and 2 outputs, got 0 and 0");
}

TEST(CpuDevice, RefusesMoreCoresThanThereAre) {
  const auto device = OpenCpuDevice({.cores = 100'000});
  EXPECT_EQ(device.status().code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(Message(device.status()).starts_with("cpu: 100000 cores asked for, "));
}

// The spec does not list the layout, but a stored plan may have it.
TEST(CpuDevice, RefusesPaddedChannels) {
  const auto device = *OpenCpuDevice({.cores = 1});
  MemoryWeights weights;
  GroupProblem problem{.graph = *ParseGraph("input x f32[1,3,4,4]\noutput relu(x)\n", &weights),
                       .pattern = "chain",
                       .input_layouts = {Layout::kChannelsLast8},
                       .output_layouts = {Layout::kChannelsLast8},
                       .cores = 1};
  EXPECT_EQ(ToString(device->Kernels(problem).status()),
            "UNIMPLEMENTED: cpu: layout channels_last8");
  const Plan plan = SingleGroupPlan(problem);
  EXPECT_EQ(ToString(device->Build({problem.graph, plan, weights}).status()),
            "UNIMPLEMENTED: cpu: layout channels_last8");
}

// Builds and runs the problem's own plan. Returns what refused it, or how it differs.
Status RunProblem(Device& device, const GroupProblem& problem) {
  AG_TRY(device.Kernels(problem));
  const SyntheticWeights weights;
  AG_LET(const std::unique_ptr<Executable> executable,
         device.Build({problem.graph, SingleGroupPlan(problem), weights}));
  std::vector<Tensor> inputs, outputs;
  for (const NodeId id : problem.graph.inputs()) {
    inputs.push_back(RandomTensor(problem.graph.type({id, 0}), 3 + inputs.size()));
  }
  for (const GraphOutput& output : problem.graph.outputs()) {
    outputs.push_back(Tensor::Zeros(problem.graph.type(output.edge)));
  }
  AG_LET(const std::vector<Tensor> expected, Evaluate(problem.graph, inputs, weights));
  AG_TRY(executable->Run(inputs, outputs));
  for (size_t i = 0; i < expected.size(); ++i) {
    const OutputError error = CompareTensors("y", expected[i], outputs[i]);
    if (!IsEquivalent(error, 1e-5)) return Err(StatusCode::kInternal, "error {}", error.max_rel);
  }
  return OkStatus();
}

TEST(CpuDevice, ChainsComputeEveryType) {
  const auto device = *OpenCpuDevice({.cores = 1});
  for (const char* type : {"f32", "f64", "i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8"}) {
    const Graph graph = *ParseGraph(
        fmt::format("input x {0}[37]\ninput y {0}[37]\noutput z = max(add(x, y), y)\n", type));
    EXPECT_EQ(ToString(RunProblem(*device, {.graph = graph,
                                            .pattern = "chain",
                                            .input_layouts = {Layout::kPlain, Layout::kPlain},
                                            .output_layouts = {Layout::kPlain}})),
              "OK")
        << type;
  }
}

// Returns element 7 of the output, where every element of the f32 input x[20] is `x`.
double ResultFor(float x, std::string_view rest) {
  const auto device = *OpenCpuDevice({.cores = 1});
  Built built = BuildText(*device, fmt::format("input x f32[20]\n{}", rest), 1);
  built.inputs[0] = Tensor::FromFloats({20}, std::vector<float>(20, x));
  EXPECT_TRUE(built.executable->Run(built.inputs, built.outputs).ok());
  return built.outputs[0].At(7);
}

// 100,000,000 + 1 is 100,000,000 in f32.
TEST(CpuDevice, ChainsOfFloatsComputeInFloats) {
  EXPECT_EQ(ResultFor(1, "c = const f32[] {100000000}\noutput y = sub(add(x, c), c)\n"), 0);
}

// A chain of several types runs in doubles, and each value is rounded to its own type: in f32,
// log(2) / log(16) * 8 is exactly 2, and in doubles, with the same constants, a little less.
TEST(CpuDevice, ChainsOfSeveralTypesRoundEachValue) {
  EXPECT_EQ(ResultFor(2,
                      "c = const f32[] {2.7725887}\nd = const f32[] {8}\n"
                      "output y = cast(mul(div(log(x), c), d)) to=i64\n"),
            2);
  const char* const there_and_back = "b = cast(x) to=u8\noutput y = cast(b) to=f32\n";
  EXPECT_EQ(ResultFor(300.5F, there_and_back), 255);
  EXPECT_EQ(ResultFor(std::nanf(""), there_and_back), 0);
}

// Returns a tensor of integers of every size that the type has, of both signs.
Tensor Integers(const TensorType& type, uint64_t seed) {
  std::string bytes(static_cast<size_t>(type.Bytes()), '\0');
  const auto width = static_cast<size_t>(SizeOf(type.dtype));
  for (size_t i = 0; i < bytes.size(); i += width) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    const int64_t value = static_cast<int64_t>(seed) >> ((seed >> 8) % 64);
    std::memcpy(&bytes[i], &value, width);
  }
  return Tensor::FromBytes(type, bytes);
}

// Integers are exact and wrap, alone and where a chain has numbers, too.
TEST(CpuDevice, IntegersAreExact) {
  const auto device = *OpenCpuDevice({.cores = 1});
  const char* const kCases[] = {
      "add(mul(x, y), sub(y, x))",
      "div(x, y)",
      "mod(x, y)",
      "mod(x, y) fmod=1",
      "max(min(x, y), const {0}[] {{3}})",
      "clip(add(x, y)) min=-5 max=100",
      "clip(x) min=-300 max=1e+30",
      "clip(x) min=300",
      "pad(x) pads=[0,1,0,1] value=300",
      "where(greater(x, y), add(x, y), y)",
      "cast(equal(max(x, y), x)) to={0}",
      "cast(mul(cast(add(x, y)) to=f64, const f64[] {{0.37}})) to={0}",
      "cast(cast(mul(x, y)) to=f32) to=i64",
      "cast(cast(mul(x, y)) to=i16) to={0}",
      "cast(cast(cast(x) to=bool) to=u32) to={0}",
      "abs(sign(neg(relu(sub(x, y)))))",
      "reduce_sum(mul(x, y)) axes=[1]",
      "reduce_mean(x) axes=[0,1]",
      "reduce_max(x) axes=[0]",
      "add(x, slice(y) axes=[0] starts=[0] ends=[1] steps=[1])",
  };
  for (const char* type : {"i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8"}) {
    for (const char* text : kCases) {
      const std::string node = fmt::format(fmt::runtime(text), type);
      Built built = BuildText(
          *device,
          fmt::format("input x {0}[5,37]\ninput y {0}[5,37]\noutput z = {1}\n", type, node), 1);
      for (size_t i = 0; i < 2; ++i) built.inputs[i] = Integers(built.inputs[i].type(), 7 + i);
      const auto expected = Evaluate(built.graph, built.inputs, *built.weights);
      ASSERT_TRUE(expected.ok()) << ToString(expected.status());
      ASSERT_TRUE(built.executable->Run(built.inputs, built.outputs).ok());
      EXPECT_EQ((*expected)[0].bytes(), built.outputs[0].bytes()) << type << ": " << node;
    }
  }
}

// What works on blocks of 16 channels, and what refuses them.
TEST(CpuDevice, BlocksOfChannelsMoveWhole) {
  const auto device = *OpenCpuDevice({.cores = 1});
  const struct {
    const char* name;
    int channels;
    const char* node;  // Of x and y.
    Layout out;
    const char* status;
  } kCases[] = {
      {"rows folded", 32, "z = reduce_mean(x) axes=[3]", Layout::kPlain, "OK"},
      {"planes folded", 32, "z = reduce_max(x) axes=[2,3]", Layout::kPlain, "OK"},
      {"rows folded in blocks", 20, "z = reduce_mean(x) axes=[3]", Layout::kBlocked16, "OK"},
      {"plain of padded channels", 20, "z = reduce_mean(x) axes=[3]", Layout::kPlain,
       "UNIMPLEMENTED: ReduceMean: plain output of padded channels"},
      {"channels folded", 32, "z = reduce_mean(x) axes=[1]", Layout::kBlocked16,
       "UNIMPLEMENTED: ReduceMean: blocked channels can only be kept"},
      {"planes grow", 20, "z = pad(x) pads=[0,0,1,1,0,0,1,2]", Layout::kBlocked16, "OK"},
      {"channels before", 32, "z = pad(x) pads=[0,16,0,0,0,0,0,0]", Layout::kBlocked16,
       "UNIMPLEMENTED: Pad: layout blocked16 (cut channels)"},
      {"channels behind", 32, "z = pad(x) pads=[0,0,0,0,0,16,0,0]", Layout::kBlocked16,
       "UNIMPLEMENTED: Pad: layout blocked16 (cut channels)"},
      {"edges", 32, "z = pad(x) pads=[0,0,1,1,0,0,1,2] mode=edge", Layout::kBlocked16,
       "UNIMPLEMENTED: Pad: layout blocked16 (cut channels)"},
      {"ones beside padding", 20, "z = pad(x) pads=[0,0,1,1,0,0,1,2] value=1", Layout::kBlocked16,
       "UNIMPLEMENTED: Pad: layout blocked16 (cut channels)"},
      {"ones", 32, "z = pad(x) pads=[0,0,1,1,0,0,1,2] value=1", Layout::kBlocked16, "OK"},
      {"cut at a block", 36, "z, w = split(x) axis=1 sizes=[16,20]", Layout::kBlocked16, "OK"},
      {"cut in a block", 36, "z, w = split(x) axis=1 sizes=[20,16]", Layout::kBlocked16,
       "UNIMPLEMENTED: Split: layout blocked16 (cut channels)"},
      {"cut in rows", 20, "z, w = split(x) axis=3 sizes=[2,4]", Layout::kBlocked16, "OK"},
      {"the last channels", 36, "z = slice(x) axes=[1] starts=[16] ends=[36] steps=[1]",
       Layout::kBlocked16, "OK"},
      {"channels from 8", 36, "z = slice(x) axes=[1] starts=[8] ends=[24] steps=[1]",
       Layout::kBlocked16, "UNIMPLEMENTED: Slice: layout blocked16 (cut channels)"},
      {"channels to 24", 36, "z = slice(x) axes=[1] starts=[0] ends=[24] steps=[1]",
       Layout::kBlocked16, "UNIMPLEMENTED: Slice: layout blocked16 (cut channels)"},
      {"every second channel", 36, "z = slice(x) axes=[1] starts=[0] ends=[32] steps=[2]",
       Layout::kBlocked16, "UNIMPLEMENTED: Slice: layout blocked16 (cut channels)"},
      {"every second row", 36, "z = slice(x) axes=[2] starts=[0] ends=[5] steps=[2]",
       Layout::kBlocked16, "OK"},
      {"joined in rows", 20, "z = concat(x, x) axis=2", Layout::kBlocked16, "OK"},
      {"joined at a block", 32, "z = concat(x, x) axis=1", Layout::kBlocked16, "OK"},
      {"joined in a block", 20, "z = concat(x, x) axis=1", Layout::kBlocked16,
       "UNIMPLEMENTED: Concat: layout blocked16 (cut channels)"},
  };
  for (const auto& c : kCases) {
    const std::string_view node = c.node;
    const bool two = node.starts_with("z, w");
    const Graph graph = *ParseGraph(fmt::format("input x f32[1,{},5,6]\n{}\noutput z\n{}",
                                                c.channels, node, two ? "output w\n" : ""));
    const char* pattern = node.find("reduce") != node.npos ? "reduce"
                          : node.find("pad") != node.npos  ? "pad"
                                                           : "concat";
    const GroupProblem problem{.graph = graph,
                               .pattern = pattern,
                               .input_layouts = {Layout::kBlocked16},
                               .output_layouts = std::vector<Layout>(two ? 2 : 1, c.out)};
    EXPECT_EQ(ToString(RunProblem(*device, problem)), c.status) << c.name;
  }
}

// Whatever element is not a number, no element of its row is one.
TEST(CpuDevice, SoftmaxOfARowThatHasNan) {
  const auto device = *OpenCpuDevice({.cores = 1});
  constexpr int kSize = 37;
  const std::string text = fmt::format("input x f32[{0},{0}]\noutput y = softmax(x) axis=1", kSize);
  Built built = BuildText(*device, text, 1);
  built.inputs[0] = Tensor::Zeros({DType::kFloat32, {kSize, kSize}});
  for (int i = 0; i < kSize; ++i) built.inputs[0].Put(i * kSize + i, NAN);
  ASSERT_TRUE(built.executable->Run(built.inputs, built.outputs).ok());
  for (const float y : built.outputs[0].As<float>()) ASSERT_TRUE(std::isnan(y));
}

// Of a batch of 0.
TEST(CpuDevice, RunsGroupsWithoutElements) {
  const auto device = *OpenCpuDevice({.cores = 1});
  const std::pair<const char*, const char*> kMade[] = {
      {"conv",
       "conv(x, const f32[16,16,3,3] seed 1, const f32[16] seed 2) pads=[1,1,1,1] strides=[1,1] "
       "dilations=[1,1]"},
      {"pool", "max_pool(x) kernel_shape=[2,2] strides=[2,2] pads=[0,0,0,0] dilations=[1,1]"},
      {"reduce", "reduce_mean(x) axes=[2,3]"},
      {"softmax", "softmax(x) axis=1"},
      {"dense", "matmul(x, const f32[8,5] seed 1)"},
      {"move", "transpose(x) perm=[0,2,3,1]"},
  };
  for (const auto& [pattern, made] : kMade) {
    const auto status = ToString(RunProblem(
        *device, {.graph = *ParseGraph(fmt::format("input x f32[0,16,8,8]\noutput y = {}\n", made)),
                  .pattern = pattern,
                  .input_layouts = {Layout::kPlain},
                  .output_layouts = {Layout::kPlain}}));
    EXPECT_EQ(status, "OK") << made;
  }
}

// A group that says no cores gets those of the device.
TEST(CpuDevice, NoCoresAreAllCores) {
  const auto device = *OpenCpuDevice();
  const Graph graph =
      *ParseGraph("input x f32[1,64]\nw = const f32[64,64] seed 1\noutput y = matmul(x, w)\n");
  GroupProblem problem{.graph = graph,
                       .pattern = "dense",
                       .input_layouts = {Layout::kPlain},
                       .output_layouts = {Layout::kPlain}};
  const auto names = device->Kernels(problem);
  ASSERT_EQ(ToString(names.status()), "OK");
  problem.cores = device->spec().cores;
  EXPECT_EQ(*device->Kernels(problem), *names);
}

TEST(CpuDevice, ProductsHaveAtMostSixAxes) {
  const auto device = *OpenCpuDevice({.cores = 1});
  const auto status = [&](const char* batch) {
    return ToString(RunProblem(
        *device, {.graph = *ParseGraph(fmt::format("input a f32[{0}3,4]\ninput b f32[{0}4,5]\n"
                                                   "output y = matmul(a, b)\n",
                                                   batch)),
                  .pattern = "dense",
                  .input_layouts = {Layout::kPlain, Layout::kPlain},
                  .output_layouts = {Layout::kPlain}}));
  };
  EXPECT_EQ(status("1,2,1,2,"), "OK");
  EXPECT_EQ(status("1,2,1,2,1,"), "OK");  // The reference kernel takes what oneDNN does not.
}

TEST(CpuDevice, StreamsOverlap) {
  const auto device = *OpenCpuDevice();
  if (device->spec().cores < 2) GTEST_SKIP() << "one core";
  Built built;
  built.graph = *ParseGraph(kTwoBranches, built.weights.get());
  built.plan = BesidePlanOf(*device, built.graph);
  built = BuildPlan(*device, std::move(built));
  ASSERT_EQ(built.plan.streams.size(), 2u);
  const auto expected = *Evaluate(built.graph, built.inputs, *built.weights, {.threads = 2});
  bool overlapped = false;
  for (int attempt = 0; attempt < 5 && !overlapped;
       ++attempt) {  // Other processes may hold the second core.
    std::vector<TraceEvent> trace;
    ASSERT_TRUE(
        built.executable->Time({built.inputs, built.outputs, 1, Caches::kAsLeft, &trace}).ok());
    ASSERT_EQ(trace.size(), 2u);
    EXPECT_NE(trace[0].stream, trace[1].stream);
    overlapped = trace[0].begin < trace[1].end && trace[1].begin < trace[0].end;
  }
  EXPECT_TRUE(overlapped);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(built.outputs[i].At(12345), expected[i].At(12345), 1e-3);
  }
}

// Two branches, a product on all cores, two branches.
constexpr std::string_view kWideBetween = R"(
input x f32[512,512]
w = const f32[512,512] seed 1
a = softmax(x) axis=1
b = softmax(x) axis=0
m = matmul(add(a, b), w)
c = softmax(m) axis=1
output y = add(c, softmax(m) axis=0)
)";

Plan WidePlanOf(const Device& device, const Graph& graph) {
  RooflineTimes times(device.spec());
  TimedGroups wide = *FormTimedGroups(graph, device.spec(), {}, times);
  TimedGroups narrow = wide;
  for (size_t g = 0; g < wide.groups.size(); ++g) {
    narrow.groups[g].cores = 1;
    narrow.times[g].ns = 1e6;
    wide.times[g].ns = wide.groups[g].pattern == "dense" ? 5e5 : 1e6;
  }
  Schedule schedule = GreedyWideStreams(graph, narrow, wide, device.spec(), 2);
  return *CompletePlan(graph, std::move(schedule.timed.groups), std::move(schedule.streams),
                       device.spec(), {});
}

TEST(CpuDevice, AGroupOnAllCoresRunsBesideNothing) {
  const auto device = *OpenCpuDevice();
  if (device->spec().cores < 2) GTEST_SKIP() << "one core";
  Built built;
  built.graph = *ParseGraph(kWideBetween, built.weights.get());
  built.plan = WidePlanOf(*device, built.graph);
  built = BuildPlan(*device, std::move(built));
  ASSERT_EQ(built.plan.streams.size(), 2u);
  const auto expected = *Evaluate(built.graph, built.inputs, *built.weights, {.threads = 2});
  for (int run = 0; run < 20; ++run) {
    std::vector<TraceEvent> trace;
    ASSERT_TRUE(
        built.executable->Time({built.inputs, built.outputs, 1, Caches::kAsLeft, &trace}).ok());
    int wide = 0;
    for (const TraceEvent& event : trace) {
      if (built.plan.groups[event.group].cores == 1) continue;
      ++wide;
      for (const TraceEvent& other : trace) {
        if (other.group == event.group) continue;
        EXPECT_TRUE(other.end <= event.begin || event.end <= other.begin) << other.group;
      }
    }
    EXPECT_GE(wide, 1);
    EXPECT_LT(wide, static_cast<int>(trace.size()) - 1);
    EXPECT_NEAR(built.outputs[0].At(12345), expected[0].At(12345), 1e-5);
  }
}

TEST(CpuDevice, RefusesAGroupOnAllCoresBesideOthers) {
  const auto device = *OpenCpuDevice();
  if (device->spec().cores < 2) GTEST_SKIP() << "one core";
  MemoryWeights weights;
  const Graph graph = *ParseGraph(kTwoBranches, &weights);
  Plan plan = BesidePlanOf(*device, graph);
  plan.groups[0].cores = 2;
  EXPECT_EQ(Message(device->Build({graph, plan, weights}).status()),
            "cpu: group 0: 2 cores beside other groups, which have one each");
}

// A caller's own OpenMP is independent of the device's threads.
TEST(CpuDevice, StreamsRunInsideTheCallersParallelRegion) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer does not see how libgomp's team waits for its threads";
#endif
  const auto device = *OpenCpuDevice();
  if (device->spec().cores < 2) GTEST_SKIP() << "one core";
  Built built;
  built.graph = *ParseGraph(kWideBetween, built.weights.get());
  built.plan = BesidePlanOf(*device, built.graph);
  built = BuildPlan(*device, std::move(built));
  const auto expected = *Evaluate(built.graph, built.inputs, *built.weights, {.threads = 2});
  Status status = Err(StatusCode::kInternal, "never ran");
#pragma omp parallel num_threads(2)
  if (omp_get_thread_num() == 1)
    status = built.executable->Run(built.inputs, built.outputs).status();
  EXPECT_EQ(ToString(status), "OK");
  EXPECT_NEAR(built.outputs[0].At(12345), expected[0].At(12345), 1e-5);
}

// Inside a part of the caller's team, one thread runs all streams.
TEST(CpuDevice, StreamsRunOneByOneInsideAPart) {
  const auto device = *OpenCpuDevice();
  if (device->spec().cores < 2) GTEST_SKIP() << "one core";
  Built built;
  built.graph = *ParseGraph(kWideBetween, built.weights.get());
  built.plan = BesidePlanOf(*device, built.graph);
  built = BuildPlan(*device, std::move(built));
  const auto expected = *Evaluate(built.graph, built.inputs, *built.weights, {.threads = 2});
  cpu::Team team(2);
  Status status = Err(StatusCode::kInternal, "never ran");
  team.Run(2, [&](int part) {
    if (part == 1) status = built.executable->Run(built.inputs, built.outputs).status();
  });
  EXPECT_EQ(ToString(status), "OK");
  EXPECT_NEAR(built.outputs[0].At(12345), expected[0].At(12345), 1e-5);
}

TEST(CpuDevice, RunsBesideEachOtherEachOnce) {
  const auto device = *OpenCpuDevice({});
  if (device->spec().cores < 2) GTEST_SKIP() << "one core";
  std::atomic<int> first{0}, second{0};
  const auto work = [&](int i) { ++(i == 0 ? first : second); };
  const auto together = device->RunBeside(2, work);
  ASSERT_TRUE(together.has_value());
  EXPECT_GT(together->count(), 0);
  EXPECT_EQ(device->RunBeside(device->spec().cores + 1, [](int) {}), std::nullopt);
  // Inside a run beside another one they take turns.
  device->RunBeside(2, [&](int) { EXPECT_EQ(device->RunBeside(2, work), std::nullopt); });
  EXPECT_EQ(first, 3);
  EXPECT_EQ(second, 3);
}

// The plan of a session that measures nothing.
TEST(CpuDevice, GuessesTheFastestKernelFirst) {
  const auto device = *OpenCpuDevice();
  if (cpu::InstructionSet() == "sse41") GTEST_SKIP() << "neither AVX-512 nor AVX2";
  struct Case {
    std::string_view name, text, first;  // First with AVX-512.
    std::string_view first_with_avx2;
  };
  constexpr Case kCases[] = {
      {"wide",
       "input x f32[1,64,28,28]\nw = const f32[64,64,3,3] seed 1\nb = const f32[64] seed 2\n"
       "output conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1]\n",
       "winograd_tiles", "winograd_tiles"},
      {"32 to 32",
       "input x f32[1,32,56,56]\nw = const f32[32,32,3,3] seed 1\nb = const f32[32] seed 2\n"
       "output conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1]\n",
       "winograd_tiles", "winograd_tiles"},
      {"rows", "input x f32[197,768]\nw = const f32[768,768] seed 1\noutput matmul(x, w)\n",
       "panels", "convolution"},
      {"row", "input x f32[1,768]\nw = const f32[768,768] seed 1\noutput matmul(x, w)\n", "panels",
       "inner_product"}};
  for (const Case& c : kCases) {
    MemoryWeights weights;
    const Graph graph = *ParseGraph(c.text, &weights);
    const Plan plan = PlanOf(*device, graph, 1);
    const auto is_anchor = [](const Group& g) {
      return g.pattern == "conv" || g.pattern == "dense";
    };
    const auto group = std::ranges::find_if(plan.groups, is_anchor);
    ASSERT_NE(group, plan.groups.end()) << c.name;
    const StatusOr<std::vector<std::string>> names =
        device->Kernels(ExtractGroup(graph, *group, Policy()));
    ASSERT_EQ(ToString(names.status()), "OK") << c.name;
    const bool wide = cpu::InstructionSet() == "avx512";
    EXPECT_EQ(names->front(), wide ? c.first : c.first_with_avx2) << c.name;
  }
}

// Otherwise oneDNN waits for libgomp's threads even when they do not run.
// Tiles of 2x2 outputs are offered where there are at most 40 of 4x4.
TEST(CpuDevice, SmallTilesAreForSmallImages) {
  const auto device = *OpenCpuDevice();
  for (const auto& [size, is_offered] : {std::pair(14, true), {24, true}, {28, false}}) {
    MemoryWeights weights;
    const Graph graph =
        *ParseGraph(fmt::format("input x f32[1,32,{0},{0}]\nw = const f32[32,32,3,3] seed 1\n"
                                "b = const f32[32] seed 2\noutput conv(x, w, b) strides=[1,1] "
                                "pads=[1,1,1,1] dilations=[1,1]\n",
                                size),
                    &weights);
    const Plan plan = PlanOf(*device, graph, 1);
    const auto group = std::ranges::find(plan.groups, "conv", &Group::pattern);
    ASSERT_NE(group, plan.groups.end());
    const auto names = *device->Kernels(ExtractGroup(graph, *group, Policy()));
    EXPECT_EQ(std::ranges::count(names, "winograd_small_tiles"), is_offered ? 1 : 0) << size;
    EXPECT_EQ(std::ranges::count(names, "winograd_tiles"), 1) << size;
  }
}

TEST(CpuDevice, OneDnnRunsOnOurTeams) { EXPECT_TRUE(cpu::RunOneDnnOnTeams()); }

TEST(CpuDevice, RefusesPlansWithoutTheirWaits) {
  const auto device = *OpenCpuDevice();
  if (device->spec().cores < 2) GTEST_SKIP() << "one core";
  MemoryWeights weights;
  const Graph graph = *ParseGraph(R"(
input x f32[256,256]
w = const f32[256,256] seed 1
a = matmul(x, w)
b = softmax(x) axis=1
output y = matmul(a, b)
)",
                                  &weights);
  Plan plan = BesidePlanOf(*device, graph);
  int removed = 0;
  for (Stream& stream : plan.streams) {
    for (Launch& launch : stream.launches) {
      removed += static_cast<int>(launch.waits.size());
      launch.waits.clear();
    }
  }
  ASSERT_GT(removed, 0);
  EXPECT_EQ(device->Build({graph, plan, weights}).status().code(), StatusCode::kInvalidArgument);
}

TEST(CpuDevice, ChecksBuffers) {
  const auto device = *OpenCpuDevice();
  Built built = BuildText(*device, "input x f32[2,3]\noutput y = relu(x)", 1);
  built.inputs[0] = RandomTensor({DType::kFloat32, {3, 2}}, 1);
  EXPECT_EQ(Message(built.executable->Run(built.inputs, built.outputs).status()),
            "run: input \"x\": expected f32[2,3], got f32[3,2]");
}

TEST(CpuDevice, RefusesUnknownKernelsAndPrecisions) {
  const auto device = *OpenCpuDevice();
  Built built = BuildText(*device, "input x f32[2,3]\noutput y = relu(x)", 1);
  Plan plan = built.plan;
  plan.groups[0].kernel = "magic";
  EXPECT_EQ(Message(device->Build({built.graph, plan, *built.weights}).status()),
            "stream 0: group 0: group chain: no kernel magic");
  plan = built.plan;
  plan.policy.precision = "fp16";
  const Status refused = device->Build({built.graph, plan, *built.weights}).status();
  EXPECT_EQ(refused.code(), StatusCode::kUnimplemented);
  EXPECT_TRUE(Message(refused).starts_with("cpu: precision fp16; it offers fp32"))
      << Message(refused);
}

// Also run with an instruction set that has no bf16 (CMakeLists.txt).
TEST(CpuDevice, OffersBf16WhereTheProcessorHasIt) {
  const auto device = *OpenCpuDevice();
  EXPECT_EQ(device->spec().Offers("bf16"), cpu::HasBf16Products());
  Built built = BuildText(*device, "input x f32[2,3]\noutput y = relu(x)", 1);
  built.plan.policy.precision = "bf16";
  const Status status = device->Build({built.graph, built.plan, *built.weights}).status();
  EXPECT_EQ(ToString(status), cpu::HasBf16Products()
                                  ? "OK"
                                  : "UNIMPLEMENTED: cpu: precision bf16: the processor has "
                                    "neither AVX512-BF16 nor AMX-BF16; it offers fp32");
}

// Our own kernels; oneDNN allocates a small argument map in each execution.
TEST(CpuDevice, RunsWithoutAllocating) {
  const auto device = *OpenCpuDevice();
  Built built = BuildText(*device, R"(
input x f32[64,300]
s = const f32[300] seed 1
h = const f32[300] seed 2
n = layer_norm(x, s, h) axis=1
g = gelu(mul(n, sigmoid(add(n, s))))
c = concat(g, n) axis=1
m = transpose(reduce_mean(c) axes=[1]) perm=[1,0]
output p = softmax(c) axis=1
output m
)",
                          1);
  ASSERT_TRUE(built.executable->Run(built.inputs, built.outputs).ok());
  const int64_t before = allocations;
  const Status status = built.executable->Run(built.inputs, built.outputs).status();
  EXPECT_EQ(allocations - before, 0);
  EXPECT_TRUE(status.ok());
}

TEST(CpuDevice, RunsFromSeveralPlansAtOnce) {
  const auto device = *OpenCpuDevice();
  Built a = BuildText(*device, kTwoBranches, std::min(2, device->spec().cores));
  Built b = BuildText(*device, kTwoBranches, 1);
  ASSERT_TRUE(a.executable->Run(a.inputs, a.outputs).ok());
  ASSERT_TRUE(b.executable->Run(b.inputs, b.outputs).ok());
  for (size_t i = 0; i < a.outputs.size(); ++i) {
    EXPECT_NEAR(a.outputs[i].At(777), b.outputs[i].At(777), 1e-3);
  }
}

}  // namespace
}  // namespace ag
