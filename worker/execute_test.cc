#include "worker/execute.h"

#include <gtest/gtest.h>

#include <map>
#include <span>

#include "device/open_device.h"
#include "device/sim/sim_device.h"
#include "plan/equivalence.h"
#include "plan/fusion/group_time.h"
#include "worker/testing/testing.h"

namespace ag {
namespace {

constexpr std::string_view kTwoLayers =
    "input x f32[4,16]; w = const f32[16,16] seed 1; v = const f32[16,16] seed 2;"
    "output y = matmul(relu(matmul(x, w)), v)";
constexpr std::string_view kOneLayer =
    "input x f32[4,16]; w = const f32[16,16] seed 1; output y = relu(matmul(x, w))";
// An executor in this process with the test's progress callback and weights.
class ExecuteTest : public ::testing::Test {
 protected:
  Executor& Open(std::string_view lines) {
    auto device = OpenSimDevice(testing::SmallSpec(lines));
    AG_CHECK(device.ok());
    return Use(*std::move(device));
  }

  Executor& Use(std::unique_ptr<Device> device) {
    ProfileOptions profile;
    profile.warm_up = Nanos(1000);
    profile.interference = foreign_load_;
    const auto on_progress = [this](int i) {
      progress_.push_back(i);
      clock_.Advance(entry_takes_);
    };
    executor_ = std::make_unique<Executor>(std::move(device), testing::Share(weights_), clock_,
                                           profile, on_progress);
    return *executor_;
  }

  Candidate Planned(std::string_view text) {
    return testing::Planned(text, executor_->device().spec(), weights_.get());
  }

  const std::shared_ptr<MemoryWeights> weights_ = std::make_shared<MemoryWeights>();
  FakeClock clock_;
  std::vector<int> progress_;
  Nanos entry_takes_{0};
  InterferenceMonitor* foreign_load_ = nullptr;
  std::unique_ptr<Executor> executor_;
};

// Other processes that use a core until some time.
class OthersUntil : public InterferenceMonitor {
 public:
  OthersUntil(Clock& clock, Nanos end) : clock_(clock), end_(end) {}
  double BusyCores() override { return clock_.Now() < end_ ? 1 : 0; }

 private:
  Clock& clock_;
  const Nanos end_;
};

using Indices = std::vector<int>;

// --- Groups

TEST_F(ExecuteTest, MeasuresAGroupWithEveryKernel) {
  Executor& executor = Open("scatter 0.5\n");
  const std::string problem = testing::Problem(kOneLayer, executor.device().spec());
  const auto measurement = executor.MeasureGroup(7, problem);
  ASSERT_EQ(ToString(measurement.status()), "OK");
  EXPECT_EQ(progress_, Indices{7});
  EXPECT_TRUE(measurement->simulated);
  EXPECT_EQ(measurement->alternatives.size(), 1u) << "the other kernel";
  EXPECT_LE(measurement->latency.low_ns, measurement->latency.median_ns);
  const double roofline = RooflineNs(*DecodeGroupProblem(problem), executor.device().spec());
  EXPECT_GE(measurement->latency.median_ns, roofline - 1);
  EXPECT_LE(measurement->latency.median_ns, 1.5 * roofline + 1);
}

// A device whose kernel `wrong` adds one to every output. With `ns`, it answers with these times
// per kernel for the first group, as a real device.
class OneWrongKernel : public Device {
 public:
  using Times = std::map<std::string, int64_t>;
  OneWrongKernel(std::unique_ptr<Device> inner, std::string wrong, Times ns = {})
      : Device(
            {.spec = inner->spec(), .environment = inner->environment(), .simulated = ns.empty()}),
        inner_(std::move(inner)),
        wrong_(std::move(wrong)),
        ns_(std::move(ns)) {}
  StatusOr<std::vector<std::string>> Kernels(const GroupProblem& problem) override {
    return inner_->Kernels(problem);
  }
  StatusOr<std::unique_ptr<Executable>> Build(const BuildRequest& request) override {
    AG_LET(std::unique_ptr<Executable> executable, inner_->Build(request));
    const std::string& kernel = request.plan.groups[0].kernel;
    if (ns_.contains(kernel)) {
      executable = std::make_unique<Timed>(std::move(executable), Nanos(ns_.at(kernel)));
    }
    if (kernel != wrong_) return executable;
    return std::make_unique<Wrong>(std::move(executable));
  }
  StatusOr<Nanos> Canary() override { return inner_->Canary(); }

 private:
  class Same : public Executable {
   public:
    explicit Same(std::unique_ptr<Executable> inner) : inner_(std::move(inner)) {}
    StatusOr<Nanos> Run(std::span<const Tensor> inputs, std::span<Tensor> outputs) override {
      return inner_->Run(inputs, outputs);
    }
    StatusOr<double> Time(const TimeRequest& request) override { return inner_->Time(request); }

   protected:
    std::unique_ptr<Executable> inner_;
  };

  class Wrong : public Same {
   public:
    using Same::Same;
    StatusOr<Nanos> Run(std::span<const Tensor> inputs, std::span<Tensor> outputs) override {
      AG_LET(const Nanos took, inner_->Run(inputs, outputs));
      for (Tensor& output : outputs) {
        for (float& value : output.Mutable<float>()) value += 1;
      }
      return took;
    }
  };

  class Timed : public Same {
   public:
    Timed(std::unique_ptr<Executable> inner, Nanos ns) : Same(std::move(inner)), ns_(ns) {}
    StatusOr<double> Time(const TimeRequest& request) override {
      if (request.trace != nullptr) *request.trace = {{.end = ns_}};
      return static_cast<double>(ns_.count());
    }

   private:
    const Nanos ns_;
  };

  std::unique_ptr<Device> inner_;
  const std::string wrong_;
  const Times ns_;
};

TEST_F(ExecuteTest, TheNextFastestKernelStandsInForAWrongOne) {
  Executor& right = Open("");
  const std::string problem = testing::Problem(testing::kWideSoftmax, right.device().spec());
  const auto before = right.MeasureGroup(0, problem);
  ASSERT_EQ(ToString(before.status()), "OK");
  ASSERT_EQ(before->alternatives.size(), 1u);
  Executor& executor =
      Use(std::make_unique<OneWrongKernel>(*OpenSimDevice(testing::SmallSpec("")), before->kernel));
  const auto measurement = executor.MeasureGroup(0, problem);
  ASSERT_EQ(ToString(measurement.status()), "OK");
  EXPECT_EQ(measurement->kernel, before->alternatives[0].first);
  EXPECT_EQ(measurement->latency.median_ns, before->alternatives[0].second);
  EXPECT_TRUE(measurement->alternatives.empty());
}

TEST_F(ExecuteTest, AWrongKernelIsNoMeasurement) {
  Executor& executor = Open("fault wrong Softmax");
  const auto measurement =
      executor.MeasureGroup(0, testing::Problem(testing::kWideSoftmax, executor.device().spec()));
  EXPECT_EQ(measurement.status().code(), StatusCode::kDataLoss);
  EXPECT_TRUE(Message(measurement.status()).ends_with("of the largest value"))
      << measurement.status();
}

TEST_F(ExecuteTest, ALargeGroupIsNotCompared) {
  // 2 x 512 x 512 x 128 operations: more than kCheckedFlopsMax.
  constexpr std::string_view kLarge =
      "input x f32[512,512]; w = const f32[512,128] seed 1; output y = matmul(x, w)";
  Executor& executor = Open("fault wrong MatMul");
  const std::string problem = testing::Problem(kLarge, executor.device().spec());
  ASSERT_GT(WorkOf(*DecodeGroupProblem(problem)).flops, Executor::kCheckedFlopsMax);
  EXPECT_EQ(ToString(executor.MeasureGroup(0, problem).status()), "OK");
}

TEST_F(ExecuteTest, GroupsThatAreNoneAreRefused) {
  Executor& executor = Open("");
  const std::string problem = testing::Problem(kOneLayer, executor.device().spec());
  for (size_t n = 0; n < problem.size(); n += 7) {
    EXPECT_FALSE(executor.MeasureGroup(0, problem.substr(0, n)).ok()) << n;
  }
  EXPECT_FALSE(executor.MeasureGroup(0, "garbage").ok());
}

TEST_F(ExecuteTest, ALostDeviceSaysSo) {
  Executor& executor = Open("fault sticky Softmax");
  const auto lost =
      executor.MeasureGroup(0, testing::Problem(testing::kWideSoftmax, executor.device().spec()));
  EXPECT_EQ(ToString(lost.status()), "UNAVAILABLE: small: sticky error, open the device anew");
  const auto later =
      executor.MeasureGroup(1, testing::Problem(kOneLayer, executor.device().spec()));
  EXPECT_EQ(later.status(), lost.status());
}

// --- Plan sets

TEST_F(ExecuteTest, TimesPlansAgainstTheInput) {
  Executor& executor = Open("");
  const auto timings =
      executor.TimePlans({Planned(kTwoLayers), Planned(kTwoLayers), Planned(kOneLayer)}, {});
  ASSERT_EQ(ToString(timings.status()), "OK");
  ASSERT_EQ(timings->size(), 3u);
  EXPECT_EQ((*timings)[1].verdict, Verdict::kSame);
  EXPECT_EQ((*timings)[2].verdict, Verdict::kFaster);
  EXPECT_EQ(progress_, (Indices{0, 1, 2, -1}));
}

TEST_F(ExecuteTest, RankingTakesNoMoreBlocksThanAsked) {
  Executor& executor = Open("");
  const auto timings =
      executor.TimePlans({Planned(kTwoLayers), Planned(kOneLayer)}, {.blocks_max = 3});
  ASSERT_EQ(ToString(timings.status()), "OK");
  EXPECT_EQ((*timings)[1].blocks, 3);
  EXPECT_GT((*timings)[1].speedup, 1);
  EXPECT_EQ((*timings)[1].verdict, Verdict::kAmbiguous);  // Too few blocks for a sure verdict.
}

TEST_F(ExecuteTest, WhatWasNotReadyInTimeIsLeftOut) {
  entry_takes_ = Nanos{1'000'000'000};
  Executor& executor = Open("");
  const std::vector<StatusOr<Candidate>> plans(5, Planned(kTwoLayers));
  const auto ready = [&](double seconds) {
    executor.EndWithin(seconds);
    const auto timings = executor.TimePlans(plans, {});
    int count = 0;
    for (const PlanTiming& timing : *timings) {
      count += timing.status.ok();
      if (timing.status.ok()) continue;
      EXPECT_EQ(ToString(timing.status), "CANCELLED: not timed: the time for it is up");
    }
    return count;
  };
  EXPECT_EQ(ready(0), 5);
  EXPECT_EQ(ready(0.001), 2) << "the input and one rival in any case";
  EXPECT_EQ(ready(5.5), 4) << "ready within six tenths of the time";
  EXPECT_EQ(ready(100), 5);
}

TEST_F(ExecuteTest, AGroupForWhichThereIsNoTimeIsCancelled) {
  entry_takes_ = Nanos{1'000'000'000};
  Executor& executor = Open("");
  const std::string problem = testing::Problem(kOneLayer, executor.device().spec());
  executor.EndWithin(1.5);
  EXPECT_EQ(ToString(executor.MeasureGroup(0, problem).status()), "OK");
  EXPECT_EQ(executor.MeasureGroup(1, problem).status().code(), StatusCode::kCancelled);
  executor.EndWithin(0);
  EXPECT_EQ(ToString(executor.MeasureGroup(2, problem).status()), "OK");
}

TEST_F(ExecuteTest, WaitsUntilOthersAreGone) {
  OthersUntil others(clock_, Nanos{500'000'000});
  foreign_load_ = &others;
  Executor& executor = Open("");
  const std::string problem = testing::Problem(kOneLayer, executor.device().spec());
  const auto measurement = executor.MeasureGroup(0, problem);
  ASSERT_EQ(ToString(measurement.status()), "OK");
  EXPECT_GE(clock_.Now(), Nanos{500'000'000});
  EXPECT_LE(clock_.Now(), Nanos{600'000'000});
  EXPECT_EQ(measurement->disturbed + measurement->discarded, 0);
}

TEST_F(ExecuteTest, OthersWhoStayAreSaidAndCostLittle) {
  OthersUntil others(clock_, Nanos::max());
  foreign_load_ = &others;
  Executor& executor = Open("");
  const std::string problem = testing::Problem(kOneLayer, executor.device().spec());
  for (int i = 0; i < 10; ++i) {
    const auto measurement = executor.MeasureGroup(i, problem);
    ASSERT_EQ(ToString(measurement.status()), "OK");
    EXPECT_EQ(measurement->disturbed, measurement->samples);
    EXPECT_GT(measurement->discarded, 0);
  }
  EXPECT_LE(clock_.Now(), QuietWait::kCreditMax);
  const auto timings = executor.TimePlans({Planned(kTwoLayers), Planned(kOneLayer)}, {});
  ASSERT_EQ(ToString(timings.status()), "OK");
  EXPECT_EQ((*timings)[1].disturbed, (*timings)[1].blocks);
  EXPECT_EQ((*timings)[1].verdict, Verdict::kFaster) << "the input ran beside the same";
}

// A device whose caches hold everything, so that only cold runs wait for memory.
TEST_F(ExecuteTest, TimesColdPlansAndGroups) {
  Executor& executor = Use(*OpenSimDevice(testing::CachedSpec()));
  const std::vector<StatusOr<Candidate>> plans = {Planned(kTwoLayers), Planned(kOneLayer)};
  const auto warm = executor.TimePlans(plans, {});
  const auto cold = executor.TimePlans(plans, {.cold_cache = true});
  ASSERT_EQ(ToString(cold.status()), "OK");
  EXPECT_GT((*cold)[0].latency.median_ns, (*warm)[0].latency.median_ns);
  EXPECT_EQ((*cold)[1].verdict, Verdict::kFaster);
  GroupProblem problem = *DecodeGroupProblem(testing::Problem(kOneLayer, executor.device().spec()));
  const double warm_ns = executor.MeasureGroup(0, EncodeGroupProblem(problem))->latency.median_ns;
  problem.cold_cache = true;
  EXPECT_GT(executor.MeasureGroup(0, EncodeGroupProblem(problem))->latency.median_ns, warm_ns);
}

TEST_F(ExecuteTest, ABadCandidateCostsOnlyItself) {
  Executor& executor = Open("");
  const Status no_plan = Err(StatusCode::kDataLoss, "plan: garbage");
  Candidate other_graph = Planned(kTwoLayers);
  other_graph.plan = Planned(kOneLayer).plan;
  Candidate no_weights = Planned(kTwoLayers);
  no_weights.graph =
      testing::GraphOf("input x f32[4,16]; w = const f32[16,16] seed 9; output y = matmul(x, w)");
  const auto timings = executor.TimePlans(
      {Planned(kTwoLayers), no_plan, other_graph, no_weights, Planned(kTwoLayers)}, {});
  ASSERT_EQ(ToString(timings.status()), "OK");
  ASSERT_EQ(timings->size(), 5u);
  for (const size_t good : {0u, 4u}) {
    EXPECT_EQ(ToString((*timings)[good].status), "OK");
    EXPECT_GT((*timings)[good].latency.median_ns, 0);
  }
  EXPECT_EQ((*timings)[1].status, no_plan);
  for (const size_t bad : {2u, 3u}) EXPECT_FALSE((*timings)[bad].status.ok()) << bad;
  EXPECT_EQ(progress_, (Indices{0, 1, 2, 3, 4, -1}));
}

TEST_F(ExecuteTest, WithoutItsInputASetFails) {
  Executor& executor = Open("");
  const Status garbage = Err(StatusCode::kDataLoss, "graph: garbage");
  const auto timings = executor.TimePlans({garbage, Planned(kTwoLayers)}, {});
  EXPECT_TRUE(Message(timings.status()).starts_with("the input: ")) << timings.status();
  EXPECT_EQ(ToString(executor.TimePlans({}, {}).status()),
            "INVALID_ARGUMENT: final comparison: no plans");
}

// The entry that broke the device stays the entry in hand, and no later entry is tried.
TEST_F(ExecuteTest, ALostDeviceEndsTheSet) {
  Executor& executor = Open("fault sticky Softmax");
  const auto timings = executor.TimePlans(
      {Planned(kOneLayer), Planned(testing::kWideSoftmax), Planned(kOneLayer)}, {});
  EXPECT_EQ(ToString(timings.status()), "UNAVAILABLE: small: sticky error, open the device anew");
  EXPECT_EQ(progress_, (Indices{0, 1}));
}

// --- Refinements

// The plan names one of the group's two kernels; the other one is the rival.
TEST_F(ExecuteTest, TakesTheRivalThatIsFasterAndRight) {
  const auto open = [&] { return *OpenSimDevice(testing::SmallSpec("")); };
  Executor& simulated = Use(open());
  const GroupProblem problem =
      *DecodeGroupProblem(testing::Problem(kOneLayer, simulated.device().spec()));
  const std::vector<std::string> kernels = *simulated.device().Kernels(problem);
  ASSERT_EQ(kernels.size(), 2u);
  const std::vector<KernelChoice> rival = {{0, kernels[1]}};
  Candidate candidate = Planned(kOneLayer);
  candidate.plan.groups[0].kernel = kernels[0];
  const auto refine = [&](int64_t old_ns, int64_t new_ns, const std::string& wrong) {
    Use(std::make_unique<OneWrongKernel>(
        open(), wrong, OneWrongKernel::Times{{kernels[0], old_ns}, {kernels[1], new_ns}}));
    return *executor_->RefinePlan(candidate, rival);
  };
  EXPECT_EQ(refine(2000, 1000, ""), rival);
  EXPECT_EQ(Indices(progress_.size(), 0), progress_);  // One entry, reported often.
  EXPECT_GE(progress_.size(), 60u);
  EXPECT_EQ(refine(1000, 2000, ""), std::vector<KernelChoice>());
  EXPECT_EQ(refine(2000, 1000, kernels[1]), std::vector<KernelChoice>()) << "it is wrong";
  EXPECT_EQ(*Use(open()).RefinePlan(candidate, rival), std::vector<KernelChoice>())
      << "a simulated device has nothing to refine";
}

TEST_F(ExecuteTest, WhatCannotBeRefinedIsAStatus) {
  Executor& executor = Open("");
  EXPECT_EQ(ToString(executor.RefinePlan(Planned(kOneLayer), {{7, "k"}}).status()),
            "INVALID_ARGUMENT: rival kernel k: of group 7, the plan has 1");
}

// --- Checks

TEST_F(ExecuteTest, EqualModelsHaveNoError) {
  Executor& executor = Open("");
  const auto checked = executor.Check(
      {.reference = Planned(kTwoLayers),
       .candidate = Planned(kTwoLayers),
       .inputs = {{.seed = 1, .reference_kernels = true}, {.seed = 2}, {.seed = 3}}});
  ASSERT_EQ(ToString(checked.status()), "OK");
  ASSERT_EQ(checked->errors.size(), 1u);
  EXPECT_EQ(checked->errors.front().name, "y");
  EXPECT_EQ(checked->errors.front().max_abs, 0);
  EXPECT_EQ(checked->compared.size(), 3u);
  // One entry; the nodes of the reference kernels also count as progress.
  EXPECT_EQ(Indices(progress_.size(), 0), progress_);
  EXPECT_GE(progress_.size(), 4u + 3u);
}

TEST_F(ExecuteTest, FindsWhatDiffers) {
  Executor& executor = Open("");
  constexpr std::string_view kWrong =
      "input x f32[4,16]; w = const f32[16,16] seed 1; v = const f32[16,16] seed 3;"
      "output y = matmul(relu(matmul(x, w)), v)";
  const auto checked = executor.Check(
      {.reference = Planned(kTwoLayers), .candidate = Planned(kWrong), .inputs = {{.seed = 1}}});
  ASSERT_EQ(ToString(checked.status()), "OK");
  EXPECT_FALSE(IsEquivalent(checked->errors.front(), 1e-3));
  EXPECT_TRUE(checked->compared[0].differs);
}

// A device that is wrong in both runs alike; only the reference kernels find it.
TEST_F(ExecuteTest, ReferenceKernelsFindAWrongDevice) {
  Executor& executor = Open("fault wrong dense");
  CheckRequest request{
      .reference = Planned(kOneLayer), .candidate = Planned(kOneLayer), .inputs = {{.seed = 1}}};
  auto checked = executor.Check(request);
  ASSERT_EQ(ToString(checked.status()), "OK");
  EXPECT_TRUE(IsEquivalent(checked->errors.front(), 1e-3));
  EXPECT_FALSE(checked->compared[0].reference_kernels);
  request.inputs[0].reference_kernels = true;
  checked = executor.Check(request);
  ASSERT_EQ(ToString(checked.status()), "OK");
  EXPECT_FALSE(IsEquivalent(checked->errors.front(), 1e-3));
  EXPECT_TRUE(checked->compared[0].reference_kernels);
}

// The rule is right and a kernel of the device is not.
TEST_F(ExecuteTest, ADifferenceOnTheDeviceOnlyIsSaid) {
  Executor& executor = Open("fault wrong dense");
  const CheckRequest request{.reference = Planned(kOneLayer),
                             .candidate = Planned(kOneLayer),
                             .inputs = {{.seed = 1}, {.seed = 2}}};
  const auto shown = executor.Show(request);
  ASSERT_EQ(ToString(shown.status()), "OK");
  ASSERT_TRUE(shown->has_value());
  EXPECT_TRUE((*shown)->on_device_only);
  EXPECT_EQ((*shown)->seed, 1u);
  ASSERT_EQ((*shown)->errors.size(), 1u);
  EXPECT_FALSE(IsEquivalent((*shown)->errors[0], 1e-3));
  const auto right = Open("").Show(request);
  ASSERT_EQ(ToString(right.status()), "OK");
  EXPECT_FALSE(right->has_value());
}

TEST_F(ExecuteTest, WhatCannotBeShownIsAStatus) {
  Executor& executor = Open("");
  const Candidate one = Planned(kOneLayer);
  EXPECT_EQ(ToString(executor.Show({.reference = one, .candidate = one}).status()),
            "INVALID_ARGUMENT: show: no inputs");
  const Candidate two = Planned("input x f32[4,16]; output a = relu(x); output b = tanh(x)");
  EXPECT_EQ(
      ToString(
          executor.Show({.reference = one, .candidate = two, .inputs = {{.seed = 1}}}).status()),
      "DATA_LOSS: candidate has 2 outputs, the input has 1");
}

// The first seed at which an output differs is shown: here one whose input has a large element.
TEST_F(ExecuteTest, TheFirstSeedThatDiffersIsShown) {
  Executor& executor = Open("");
  CheckRequest request{.reference = Planned("input x f32[4]; output y = relu(x)"),
                       .candidate = Planned("input x f32[4]; output y = clip(x) min=0 max=2.5")};
  for (uint64_t seed = 1; seed <= 1000; ++seed) request.inputs.push_back({.seed = seed});
  const auto largest = [&](uint64_t seed) {
    const std::vector<double> x = UsualInputs(request.reference.graph, seed)[0].ToDoubles();
    return *std::ranges::max_element(x);
  };
  uint64_t expected = 1;
  while (largest(expected) <= 2.51) ++expected;
  const auto shown = executor.Show(request);
  ASSERT_EQ(ToString(shown.status()), "OK");
  ASSERT_TRUE(shown->has_value());
  EXPECT_EQ((*shown)->seed, expected);
  EXPECT_EQ((*shown)->compared, "usual");
  EXPECT_EQ((*shown)->inputs[0].bytes(), UsualInputs(request.reference.graph, expected)[0].bytes());
}

// What does not count for a check is not shown: here both are infinite, of another sign.
TEST_F(ExecuteTest, OnlyWhatCountsIsShown) {
  Executor& executor = Open("");
  const CheckRequest request{.reference = Planned("input x f32[4]; output y = exp(mul(x, x))"),
                             .candidate = Planned("input x f32[4]; output y = neg(exp(mul(x, x)))"),
                             .inputs = {{.kind = InputKind::kLarge}, {.kind = InputKind::kTiny}}};
  const auto shown = executor.Show(request);
  ASSERT_EQ(ToString(shown.status()), "OK");
  ASSERT_TRUE(shown->has_value());
  EXPECT_EQ((*shown)->compared, "tiny");
}

TEST_F(ExecuteTest, WhatCannotBeComparedIsAStatus) {
  Executor& executor = Open("");
  const Candidate one = Planned(kOneLayer);
  const Candidate two_outputs =
      Planned("input x f32[4,16]; output a = relu(x); output b = tanh(x)");
  const struct {
    const char* name;
    CheckRequest request;
    std::string status;
  } kCases[] = {
      {"no inputs", {.reference = one, .candidate = one}, "INVALID_ARGUMENT: check: no inputs"},
      {"outputs",
       {.reference = one, .candidate = two_outputs, .inputs = {{.seed = 1}}},
       "DATA_LOSS: candidate has 2 outputs, the input has 1"},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(ToString(executor.Check(c.request).status()), c.status) << c.name;
  }
}

// --- Qualification

TEST_F(ExecuteTest, QualifiesByAConvolution) {
  EXPECT_EQ(ToString(Open("").Qualify()), "OK");
  EXPECT_EQ(ToString(Open("fault wrong Softmax").Qualify()), "OK");
  const Status wrong = Open("fault wrong conv").Qualify();
  EXPECT_TRUE(
      ToString(wrong).starts_with("UNAVAILABLE: device small failed its qualification: "
                                  "kernel  of a conv group differs from the reference by "))
      << wrong;
  EXPECT_EQ(ToString(Open("fault sticky Conv").Qualify()),
            "UNAVAILABLE: device small failed its qualification: small: sticky error, open the "
            "device anew");
}

TEST_F(ExecuteTest, TheCpuQualifiesAndAgreesWithTheReference) {
  Executor& executor = Use(*OpenDevice("cpu:1"));
  EXPECT_EQ(ToString(executor.Qualify()), "OK");
  const auto checked = executor.Check({.reference = Planned(kTwoLayers),
                                       .candidate = Planned(kTwoLayers),
                                       .inputs = {{.seed = 1, .reference_kernels = true}}});
  ASSERT_EQ(ToString(checked.status()), "OK");
  EXPECT_TRUE(IsEquivalent(checked->errors.front(), 1e-5));
}

}  // namespace
}  // namespace ag
