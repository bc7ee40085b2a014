#include "device/cuda/launch/executable.h"

#include <gtest/gtest.h>

#include "device/cuda/launch/gpu_device.h"
#include "device/cuda/launch/testing/host_device.h"
#include "device/cuda/launch/testing/reference_source.h"
#include "device/profile/profile.h"
#include "graph/reference/evaluate.h"
#include "graph/text_form.h"
#include "plan/fusion/grouping.h"
#include "plan/schedule/contention_model.h"
#include "plan/schedule/planner.h"
#include "plan/testing/testing.h"

namespace ag::cuda {
namespace {

constexpr std::string_view kBranches =
    "input x f32[1,8,4,4]\n"
    "w1 = const f32[8,8,1,1] seed 1\nw2 = const f32[8,8,3,3] seed 2\nb = const f32[8] seed 3\n"
    "a = conv(x, w1, b) strides=[1,1] pads=[0,0,0,0] dilations=[1,1]\n"
    "c = conv(x, w2, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1]\n"
    "d = relu(c)\n"
    "e = max_pool(x) kernel_shape=[3,3] strides=[1,1] pads=[1,1,1,1] dilations=[1,1]\n"
    "f = concat(a, d, e) axis=1\n"
    "g = reduce_mean(f) axes=[2,3]\n"
    "h = softmax(g) axis=1\n"
    "output h\noutput d\n";

// A device on the host with the parts that a test wants.
struct Bench {
  explicit Bench(HostDriver::Options options = {}) {
    auto functions = std::make_shared<std::map<std::string, HostDriver::Function>>();
    options.find = FindIn(functions);
    driver = std::make_unique<HostDriver>(std::move(options));
    std::vector<std::unique_ptr<KernelSource>> list;
    list.push_back(MakeReferenceSource(*driver, functions));
    sources = std::make_unique<KernelSources>(std::move(list));
    spec = LoadSpec(AG_SOURCE_DIR, "h200");
    eviction = std::make_unique<CacheEviction>(*driver, int64_t{1} << 20);
  }

  StatusOr<std::unique_ptr<GpuExecutable>> Make(const Graph& graph, const Plan& plan,
                                                const WeightSource& weights) {
    return MakeExecutable({*driver, *sources, *eviction, chip, spec}, {graph, plan, weights});
  }

  std::unique_ptr<HostDriver> driver;
  std::unique_ptr<KernelSources> sources;
  std::unique_ptr<CacheEviction> eviction;
  Chip chip;
  DeviceSpec spec;
};

struct Subject {
  explicit Subject(std::string_view text) : graph(*ParseGraph(text, &weights)) {
    for (const NodeId id : graph.inputs()) {
      inputs.push_back(RandomTensor(graph.type({id, 0}), 3 + inputs.size()));
    }
    expected = *Evaluate(graph, inputs, weights);
  }
  Plan MakePlan(const DeviceSpec& spec, const Policy& policy, int streams,
                std::string_view kernel = "") const {
    RooflineTimes times(spec);
    Plan plan = *ag::MakePlan(graph, spec, policy, times, {}, streams);
    for (Group& group : plan.groups) {
      if (group.pattern != kViewPattern) group.kernel = kernel;
    }
    return plan;
  }
  std::vector<Tensor> Outputs() const {
    std::vector<Tensor> outputs;
    for (const GraphOutput& output : graph.outputs()) {
      outputs.push_back(Tensor::Zeros(graph.type(output.edge)));
    }
    return outputs;
  }
  double Error(const std::vector<Tensor>& outputs) const {
    double error = 0;
    for (size_t i = 0; i < outputs.size(); ++i) {
      for (int64_t k = 0; k < outputs[i].type().NumElements(); ++k) {
        const double difference = std::abs(outputs[i].At(k) - expected[i].At(k));
        error = std::isnan(difference) ? 1e9 : std::max(error, difference);
      }
    }
    return error;
  }

  MemoryWeights weights;
  Graph graph;
  std::vector<Tensor> inputs, expected;
};

TEST(GpuExecutable, ComputesInEveryOrderThatStreamsAndEdgesAllow) {
  const Subject subject(kBranches);
  const std::pair<const char*, double> precisions[] = {
      {"fp32", 1e-5}, {"tf32", 1e-5}, {"fp16", 5e-3}, {"bf16", 5e-2}};
  for (const auto& [precision, tolerance] : precisions) {
    for (const int streams : {1, 2, 4}) {
      for (uint64_t seed = 1; seed <= 5; ++seed) {
        Bench bench({.seed = seed});
        const Plan plan = subject.MakePlan(bench.spec, {.precision = precision}, streams);
        const auto made = bench.Make(subject.graph, plan, subject.weights);
        ASSERT_EQ(ToString(made.status()), "OK") << precision << " " << streams;
        for (int run = 0; run < 3; ++run) {
          std::vector<Tensor> outputs = subject.Outputs();
          ASSERT_EQ(ToString((*made)->Run(subject.inputs, outputs).status()), "OK");
          EXPECT_LT(subject.Error(outputs), tolerance) << precision << " " << streams;
        }
        std::vector<Tensor> traced = subject.Outputs();
        std::vector<TraceEvent> trace;
        const auto ns = (*made)->Time({subject.inputs, traced, 1, Caches::kAsLeft, &trace});
        ASSERT_EQ(ToString(ns.status()), "OK");
        EXPECT_EQ(trace.size(), (*made)->nodes().size());
        EXPECT_LT(subject.Error(traced), tolerance);
        EXPECT_EQ(ToString(bench.driver->CheckGuards()), "OK");
      }
    }
  }
}

TEST(GpuExecutable, ReplaysWithoutAnotherCall) {
  const Subject subject(kBranches);
  Bench bench;
  const Plan plan = subject.MakePlan(bench.spec, {}, 2);
  const auto made = bench.Make(subject.graph, plan, subject.weights);
  ASSERT_EQ(ToString(made.status()), "OK");
  std::vector<Tensor> outputs = subject.Outputs();
  const int before = bench.driver->calls();
  ASSERT_EQ(ToString((*made)->Run(subject.inputs, outputs).status()), "OK");
  // One upload, one replay between two records, the time, which waits, a download for each output,
  // one wait.
  EXPECT_EQ(bench.driver->calls() - before, 1 + 3 + 2 + 2 + 1);
}

TEST(GpuExecutable, TimesShortPlansAsCopies) {
  const Subject subject("input x f32[4,4]\ny = softmax(x) axis=1\noutput y\n");
  Bench bench;
  const Plan plan = subject.MakePlan(bench.spec, {}, 1);
  const auto made = bench.Make(subject.graph, plan, subject.weights);
  ASSERT_EQ(ToString(made.status()), "OK");
  std::vector<Tensor> outputs = subject.Outputs();
  const int before = bench.driver->launches();
  const auto mean = (*made)->Time({subject.inputs, outputs, 50});
  ASSERT_EQ(ToString(mean.status()), "OK");
  EXPECT_EQ(bench.driver->launches() - before,
            4 * 20 * 2);         // Replays of 20 copies, the first not timed.
  EXPECT_NEAR(*mean, 2000, 10);  // Two kernels of 1000 ns.
  const int calls = bench.driver->calls();
  ASSERT_TRUE((*made)->Time({subject.inputs, outputs, 20}).ok());
  // Two replays, two records, the time, which waits; no copies.
  EXPECT_EQ(bench.driver->calls() - calls, 6);
  ASSERT_TRUE((*made)->Run(subject.inputs, outputs).ok());
  EXPECT_LT(subject.Error(outputs), 1e-5);
}

// A session times each run, on memory that its caller writes to between runs.
TEST(GpuExecutable, TimesRunsOnTheCallersMemory) {
  const Subject subject("input x f32[4]\ny = relu(x)\noutput y\n");
  Bench bench;
  const auto made = bench.Make(subject.graph, subject.MakePlan(bench.spec, {}, 1), subject.weights);
  ASSERT_EQ(ToString(made.status()), "OK");
  float memory[4] = {1, 2, 3, 4};
  const std::string_view bytes(reinterpret_cast<const char*>(memory), sizeof(memory));
  const std::vector<Tensor> inputs = {Tensor::View({DType::kFloat32, {4}}, bytes, nullptr)};
  for (const float value : {1.0f, 7.0f}) {
    memory[0] = value;
    std::vector<Tensor> outputs = subject.Outputs();
    ASSERT_TRUE((*made)->Run(inputs, outputs).ok());
    EXPECT_EQ(outputs[0].At(0), value);
  }
}

constexpr char kEvictionOfTheTest[] = "fill 2097152";  // Twice Bench's cache.

// Returns how often the whole plan ran between two evictions. Fails the test when it ran twice, or
// in part.
int RunsBetweenEvictions(const std::vector<std::string>& work, int launches) {
  int runs = 0, since_eviction = launches;
  for (const std::string& piece : work) {
    if (piece == kEvictionOfTheTest) {
      EXPECT_TRUE(since_eviction == 0 || since_eviction == launches) << since_eviction;
      runs += since_eviction == launches ? 1 : 0;
      since_eviction = 0;
    } else {
      ++since_eviction;
    }
  }
  EXPECT_EQ(since_eviction, 0);  // Evictions alone come last.
  return runs - 1;               // The part before the first one does not count.
}

// Evictions take as long as 50 kernels and longer than the plan; the sample contains none of it.
TEST(GpuExecutable, EvictsBeforeEveryColdRunAndLeavesItOutOfTheTime) {
  const struct {
    const char* name;
    std::string_view text;
    int streams, launches, runs;
  } kCases[] = {
      {"short", "input x f32[4,4]\ny = softmax(x) axis=1\noutput y\n", 1, 2, 2 * 20},
      {"long",
       "input x f32[4,4]\na = softmax(x) axis=1\nb = softmax(a) axis=0\nc = softmax(b) axis=1\n"
       "d = softmax(c) axis=0\ne = softmax(d) axis=1\nf = softmax(e) axis=0\n"
       "g = softmax(f) axis=1\nh = softmax(g) axis=0\ni = softmax(h) axis=1\noutput i\n",
       1, 18, 2 * 4},
      {"two streams", kBranches, 2, 18, 2 * 4},
  };
  for (const auto& c : kCases) {
    const Subject subject(c.text);
    Bench bench({.fill_time = [](int) { return Nanos(50'000); }, .keep_work = true});
    const Plan plan = subject.MakePlan(bench.spec, {.cold_cache = true}, c.streams);
    const auto made = bench.Make(subject.graph, plan, subject.weights);
    ASSERT_EQ(ToString(made.status()), "OK") << c.name;
    const int launches = 2 * static_cast<int>((*made)->nodes().size());
    EXPECT_EQ(launches, c.launches) << c.name;
    std::vector<Tensor> outputs = subject.Outputs();
    for (int sample = 1; sample <= 2; ++sample) {
      const size_t before = bench.driver->work().size();
      const auto ns = (*made)->Time({subject.inputs, outputs, 1, Caches::kEvicted});
      ASSERT_EQ(ToString(ns.status()), "OK") << c.name;
      EXPECT_NEAR(*ns, 1000 * launches, 1) << c.name;
      const auto& all = bench.driver->work();
      const std::vector<std::string> work(all.begin() + static_cast<int64_t>(before), all.end());
      EXPECT_EQ(work[0], kEvictionOfTheTest) << c.name;
      EXPECT_EQ(RunsBetweenEvictions(work, launches), c.runs) << c.name;
      EXPECT_EQ(std::ranges::count(work, kEvictionOfTheTest), 4 + 2 * c.runs) << c.name;
    }
    ASSERT_EQ(ToString((*made)->Run(subject.inputs, outputs).status()), "OK");
    EXPECT_LT(subject.Error(outputs), 1e-5) << c.name;
    EXPECT_EQ(ToString(bench.driver->CheckGuards()), "OK") << c.name;
  }
}

// Every call of a cold sample fails once: the sample fails, nothing leaks, and the next one is
// good.
TEST(GpuExecutable, AColdSampleGivesEverythingBackWhenAnyCallFails) {
  const Subject subject("input x f32[4,4]\ny = softmax(x) axis=1\noutput y\n");
  int first = 0, last = 0;
  {
    Bench bench;
    const Plan plan = subject.MakePlan(bench.spec, {}, 1);
    const auto made = bench.Make(subject.graph, plan, subject.weights);
    std::vector<Tensor> outputs = subject.Outputs();
    first = bench.driver->calls();
    ASSERT_TRUE((*made)->Time({subject.inputs, outputs, 1, Caches::kEvicted}).ok());
    last = bench.driver->calls();
  }
  EXPECT_GT(last - first, 100);
  for (int fail_at = first; fail_at < last; ++fail_at) {
    Bench bench({.fail_at = fail_at});
    const Plan plan = subject.MakePlan(bench.spec, {}, 1);
    {
      const auto made = bench.Make(subject.graph, plan, subject.weights);
      ASSERT_EQ(ToString(made.status()), "OK") << fail_at;
      std::vector<Tensor> outputs = subject.Outputs();
      const auto failed = (*made)->Time({subject.inputs, outputs, 1, Caches::kEvicted});
      EXPECT_NE(Message(failed.status()).find("made to fail"), std::string::npos) << fail_at;
      EXPECT_NEAR(*(*made)->Time({subject.inputs, outputs, 1, Caches::kEvicted}), 2000, 1)
          << fail_at;
    }
    bench.eviction.reset();
    EXPECT_EQ(bench.driver->live(), 0) << fail_at;
  }
}

TEST(GpuExecutable, RecordsTheCriticalPathFirstAndSideWorkBeforeItsJoin) {
  const Subject subject(
      "input x f32[64,64]\n"
      "a = softmax(x) axis=1\nb = softmax(a) axis=0\nc = softmax(b) axis=1\n"
      "s = transpose(x) perm=[1,0]\n"
      "t = matmul(c, s)\n"
      "output t\n");
  Bench bench;
  const Plan plan = subject.MakePlan(bench.spec, {}, 2);
  const auto made = bench.Make(subject.graph, plan, subject.weights);
  ASSERT_EQ(ToString(made.status()), "OK");
  std::vector<std::string> ops;
  for (const GroupNodes& nodes : (*made)->nodes()) {
    const NodeId id = plan.groups[nodes.group].nodes[0];
    ops.emplace_back(Info(subject.graph.node(id).op).name);
    EXPECT_EQ(nodes.nodes.size(), 2u);
  }
  EXPECT_EQ(ops,
            (std::vector<std::string>{"Softmax", "Softmax", "Softmax", "Transpose", "MatMul"}));
}

TEST(ActiveCores, AsManyAsTheLargestKernelHasBlocks) {
  const auto kernel = [](uint32_t x, uint32_t y, uint32_t z) {
    return NodeInfo{.kind = NodeKind::kKernel, .grid = {x, y, z}};
  };
  const struct {
    const char* name;
    std::vector<NodeInfo> nodes;
    int busy;
  } kCases[] = {
      {"one block", {kernel(1, 1, 1)}, 1},
      {"all dimensions count", {kernel(2, 3, 4)}, 24},
      {"no more than there are", {kernel(100, 100, 1)}, 132},
      {"the product of dimensions does not wrap", {kernel(1U << 31, 65535, 65535)}, 132},
      {"the largest of several", {kernel(8, 1, 1), kernel(40, 1, 1), kernel(2, 1, 1)}, 40},
      {"copies have no blocks", {{.kind = NodeKind::kCopy}, kernel(3, 1, 1)}, 3},
      {"no kernel", {{.kind = NodeKind::kFill}}, 0},
      {"a driver that does not tell", {kernel(0, 0, 0)}, 0},
      {"nothing", {}, 0},
  };
  for (const auto& c : kCases) EXPECT_EQ(ActiveCores({0, c.nodes}, 132), c.busy) << c.name;
}

TEST(GpuExecutable, SaysHowManyCoresItsGroupsKeepBusy) {
  const Subject subject(
      "input x f32[32,32]\ninput y f32[8,24]\n"
      "output a = softmax(x) axis=1\noutput b = softmax(y) axis=1\n");
  Bench bench;
  bench.spec.cores = 20;
  const Plan plan = subject.MakePlan(bench.spec, {}, 2);
  const auto made = bench.Make(subject.graph, plan, subject.weights);
  ASSERT_EQ(ToString(made.status()), "OK");
  std::map<int64_t, int> busy;  // By the size of the group's output.
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    const Edge output = plan.groups[g].outputs[0].edge;
    busy[subject.graph.type(output).NumElements()] = (*made)->active_cores(static_cast<int>(g));
  }
  // A block for 16 elements each (reference_source.cc).
  EXPECT_EQ(busy, (std::map<int64_t, int>{{32 * 32, 20}, {8 * 24, 12}}));
  EXPECT_EQ((*made)->active_cores(7), 0);
}

// The host device, with a canary that costs nothing.
class QuickCanary : public Device {
 public:
  explicit QuickCanary(std::unique_ptr<Device> inner)
      : Device({.spec = inner->spec(), .environment = inner->environment()}),
        inner_(std::move(inner)) {}
  StatusOr<std::vector<std::string>> Kernels(const GroupProblem& problem) override {
    return inner_->Kernels(problem);
  }
  StatusOr<std::unique_ptr<Executable>> Build(const BuildRequest& request) override {
    return inner_->Build(request);
  }
  StatusOr<Nanos> Canary() override { return Nanos(100'000); }

 private:
  std::unique_ptr<Device> inner_;
};

// Measures groups and pairs on this device as a worker does. The driver on the host runs one node
// after the other, and the pairs show that.
TEST(GpuDevice, GroupsAndPairsAreMeasuredWithTheirShares) {
  const DeviceSpec spec = LoadSpec(AG_SOURCE_DIR, "h200");
  QuickCanary device(OpenHostDevice(HostKernels::kReference, spec));
  const Graph graph = *ParseGraph(
      "input x f32[32,32]\ninput y f32[8,24]\n"
      "output a = softmax(x) axis=1\noutput b = tanh(y)\n");
  RooflineTimes times(spec);
  PairProblem pair;
  PairTime time;
  const std::vector<Group> groups = *FormGroups(graph, spec, {}, times);
  ASSERT_EQ(groups.size(), 2u);
  const ProfileOptions options{.warm_up = Nanos(0), .samples_max = 7};
  for (size_t i = 0; i < 2; ++i) {
    pair.groups[i] = ExtractGroup(graph, groups[i], {});
    const auto measured = ProfileGroup(device, pair.groups[i], options, RealClock());
    ASSERT_EQ(ToString(measured.status()), "OK");
    const int64_t outputs = graph.type(groups[i].outputs[0].edge).NumElements();
    EXPECT_EQ(measured->active_cores, outputs / 16);
    pair.kernels[i] = measured->kernel;
    time.ns[i] = measured->latency.median_ns;
    time.cores[i] = measured->active_cores;
  }
  const auto together = ProfilePair(device, MakePair(pair), options, RealClock());
  ASSERT_EQ(ToString(together.status()), "OK");
  time.together_ns = together->latency.median_ns;
  EXPECT_NEAR(time.together_ns, time.ns[0] + time.ns[1], 0.05 * time.together_ns);
  EXPECT_LT(FitOverlap(std::span(&time, 1), spec.cores), 0.1);
}

TEST(GpuExecutable, BeginsEarlyOnlyWhereThatIsFaster) {
  const Subject subject(
      "input x f32[4,4]\na = softmax(x) axis=1\nb = softmax(a) axis=0\noutput b\n");
  struct Case {
    const char* name;
    std::string_view kernel;
    Nanos gain;
    int capability;
    bool early;
  };
  const Case cases[] = {
      {"faster", "reference:early", Nanos(500), 90, true},
      {"slower", "reference:early", Nanos(-500), 90, false},
      {"kernels that do not wait", "reference:plain", Nanos(500), 90, false},
      {"a chip without", "reference:early", Nanos(500), 80, false},
  };
  for (const Case& c : cases) {
    Bench bench({.early_gain = c.gain});
    bench.chip.compute_capability = c.capability;
    const Plan plan = subject.MakePlan(bench.spec, {}, 1, c.kernel);
    const auto made = bench.Make(subject.graph, plan, subject.weights);
    ASSERT_EQ(ToString(made.status()), "OK") << c.name;
    EXPECT_EQ((*made)->has_early_launches(), c.early) << c.name;
    std::vector<Tensor> outputs = subject.Outputs();
    ASSERT_EQ(ToString((*made)->Run(subject.inputs, outputs).status()), "OK");
    EXPECT_LT(subject.Error(outputs), 1e-5);
  }
}

// Each call of the driver fails once; nothing may leak, and nothing may be built.
TEST(GpuExecutable, GivesEverythingBackWhenAnyCallFails) {
  const Subject subject(kBranches);
  int failures = 0;
  for (int fail_at = 0;; ++fail_at) {
    Bench bench({.fail_at = fail_at});
    const Plan plan = subject.MakePlan(bench.spec, {}, 2, "reference:early");
    {
      const auto made = bench.Make(subject.graph, plan, subject.weights);
      if (made.ok() && bench.driver->calls() <= fail_at) break;
      if (made.ok()) continue;  // An early graph is optional.
      ++failures;
      EXPECT_NE(Message(made.status()).find("made to fail"), std::string::npos) << fail_at;
    }
    EXPECT_EQ(bench.driver->live(), 0) << fail_at;
  }
  EXPECT_GT(failures, 100);
}

// The first 21 fills of a sample are the leading one and those of its first part. With 5 us more
// each they hide two series of a plan of 2 us behind one of evictions; a second round shows it.
TEST(GpuExecutable, AColdSampleGoesOnWhereEvictionsScatter) {
  const Subject subject("input x f32[4,4]\ny = softmax(x) axis=1\noutput y\n");
  bool is_slow = false;
  int first = 0;
  Bench bench({.fill_time =
                   [&](int fill) {
                     if (first == 0) first = fill;
                     return Nanos(is_slow && fill < first + 21 ? 55'000 : 50'000);
                   },
               .keep_work = true});
  const auto made = bench.Make(subject.graph, subject.MakePlan(bench.spec, {}, 1), subject.weights);
  ASSERT_EQ(ToString(made.status()), "OK");
  std::vector<Tensor> outputs = subject.Outputs();
  first = 0;
  is_slow = true;
  const size_t before = bench.driver->work().size();
  const auto ns = (*made)->Time({subject.inputs, outputs, 1, Caches::kEvicted});
  ASSERT_EQ(ToString(ns.status()), "OK");
  // Two rounds of 40 runs of 2000 ns, less 20 fills that took 5000 ns longer.
  EXPECT_NEAR(*ns, (2 * 40 * 2000 - 20 * 5000) / 80.0, 1);
  EXPECT_EQ(bench.driver->work().size() - before, 2u * (4 + 4 * 20 + 2 * 40));
}

// Kernels that the clock does not show give no sample.
TEST(GpuExecutable, AColdSampleOfNothingIsAnError) {
  const Subject subject(
      "input x f32[4,4]\na = softmax(x) axis=1\nb = softmax(a) axis=0\noutput b\n");
  Bench bench({.early_gain = Nanos(4000)});  // As long as the plan.
  bench.chip.compute_capability = 90;
  const Plan plan = subject.MakePlan(bench.spec, {}, 1, "reference:early");
  const auto made = bench.Make(subject.graph, plan, subject.weights);
  ASSERT_EQ(ToString(made.status()), "OK");
  ASSERT_TRUE((*made)->has_early_launches());
  std::vector<Tensor> outputs = subject.Outputs();
  EXPECT_EQ(ToString((*made)->Time({subject.inputs, outputs, 1, Caches::kEvicted}).status()),
            "DATA_LOSS: sample of 0 ns beyond its evictions: expected more than 0");
}

TEST(GpuExecutable, RefusesWhatIsNone) {
  const Subject subject("input x f32[4,4]\ny = softmax(x) axis=1\noutput y\n");
  Bench bench;
  const Plan plan = subject.MakePlan(bench.spec, {}, 1, "cudnn:e1");
  EXPECT_EQ(Message(bench.Make(subject.graph, plan, subject.weights).status()),
            "group 0: kernel 'cudnn:e1': no source is called 'cudnn'");
  const auto made = bench.Make(subject.graph, subject.MakePlan(bench.spec, {}, 1), subject.weights);
  std::vector<Tensor> none;
  EXPECT_EQ(Message((*made)->Run(none, none).status()),
            "run: expected 1 inputs and 1 outputs, got 0 and 0");
}

}  // namespace
}  // namespace ag::cuda
