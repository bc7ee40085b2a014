#include "runtime/tune_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "base/file.h"
#include "device/open_device.h"
#include "plan/format/plan_codec.h"
#include "plan/format/plan_validate.h"
#include "plan/testing/testing.h"

namespace ag {
namespace {

// Layers in a chain and in two branches, so small that a launch is most of their time.
constexpr std::string_view kChain = R"(
input x f32[2,2]
w = const f32[2,2] seed 1
output softmax(matmul(softmax(matmul(x, w)) axis=1, w)) axis=1
)";
constexpr std::string_view kBeside = R"(
input x f32[2,2]
w = const f32[2,2] seed 1
v = const f32[2,2] seed 2
output "p" = softmax(matmul(softmax(matmul(x, w)) axis=1, w)) axis=1
output "q" = softmax(matmul(softmax(matmul(x, v)) axis=1, v)) axis=1
)";

int UsedStreams(const Plan& plan) {
  return static_cast<int>(std::ranges::count_if(
      plan.streams, [](const Stream& stream) { return !stream.launches.empty(); }));
}

Plan Tune(std::string_view graph, Device& device, int streams) {
  auto plan = TunePlan(GraphOf(graph), device, {.streams = streams, .instances = false});
  AG_CHECK(plan.ok());
  AG_CHECK(ValidatePlan(GraphOf(graph), *plan, device.spec()).ok());
  return *std::move(plan);
}

TEST(TunePlan, TakesSeveralStreamsWhereTheyAreFaster) {
  const auto device = *OpenDevice("sim:small");
  EXPECT_GT(UsedStreams(Tune(kBeside, *device, 0)), 1);
  EXPECT_EQ(UsedStreams(Tune(kBeside, *device, 1)), 1) << "as it was told";
  EXPECT_EQ(UsedStreams(Tune(kChain, *device, 0)), 1) << "nothing to run beside";
  EXPECT_EQ(Tune(kBeside, *device, 0).environment, device->environment());
}

TEST(TunePlan, OneStreamGivesTheSamePlanAsBefore) {
  const auto device = *OpenDevice("sim:small");
  EXPECT_EQ(EncodePlan(Tune(kChain, *device, 0)), EncodePlan(Tune(kChain, *device, 1)));
}

// Memory moves a byte a nanosecond, the cache 100; it holds the tensors of two samples.
constexpr std::string_view kCached = R"(name cached
dtypes f32
cores 1
flops_per_second 1e12
bytes_per_second 1e9
cache_bytes_per_second 1e11
cache_bytes 9000
memory_bytes 100000000
pattern softmax = Softmax layouts plain
)";

TEST(TunePlan, TakesInstancesWhereTheyAreFaster) {
  const TempDir folder = *TempDir::Make("tune");
  const auto open = [&](double launch_ns) {
    const std::string path = folder.path() + "/cached.spec";
    AG_CHECK(WriteFileAtomically(path, fmt::format("{}launch_ns {}\n", kCached, launch_ns)).ok());
    return *OpenDevice("sim:" + path);
  };
  const Graph graph = GraphOf("input x f32[8,512]\noutput y = softmax(softmax(x) axis=1) axis=1\n");
  const auto tuned = [&](Device& device, bool instances) {
    auto plan = TunePlan(graph, device, {.instances = instances});
    AG_CHECK(plan.ok());
    AG_CHECK(ValidatePlan(graph, *plan, device.spec()).ok());
    return *std::move(plan);
  };
  const auto quick = open(10);
  const Plan plan = tuned(*quick, true);
  ASSERT_EQ(plan.segments.size(), 1U);
  EXPECT_EQ(plan.segments[0].instances,
            4);  // Two samples each; one each has twice as many launches.
  EXPECT_EQ(plan.graph, graph.digest());
  EXPECT_TRUE(tuned(*quick, false).segments.empty());
  const auto slow = open(100'000);  // Each launch takes longer than all bytes.
  EXPECT_TRUE(tuned(*slow, true).segments.empty());
  const Graph mixed = GraphOf("input x f32[8,512]\noutput y = softmax(softmax(x) axis=0) axis=0\n");
  EXPECT_TRUE(TunePlan(mixed, *quick, {})->segments.empty());
}

// Two layers whose tensors fit the cache two samples at a time, then 1 MiB of weights, read once.
TEST(TunePlan, TakesSegmentsWhereTheyAreFaster) {
  const TempDir folder = *TempDir::Make("tune");
  const std::string path = folder.path() + "/cached.spec";
  const std::string spec =
      fmt::format("{}pattern dense = MatMul layouts plain\nlaunch_ns 10\n", kCached);
  ASSERT_TRUE(WriteFileAtomically(path, spec).ok());
  const auto device = *OpenDevice("sim:" + path);
  const Graph graph = GraphOf(
      "input x f32[8,512]\nw = const f32[512,512] seed 1\n"
      "output y = matmul(softmax(softmax(x) axis=1) axis=1, w)\n");
  const auto plan = TunePlan(graph, *device, {});
  ASSERT_EQ(ToString(plan.status()), "OK");
  EXPECT_EQ(ToString(ValidatePlan(graph, *plan, device->spec())), "OK");
  ASSERT_EQ(plan->segments.size(), 2U);
  EXPECT_EQ(plan->segments[0].instances, 4);
  EXPECT_EQ(plan->segments[1].instances, 1);
  EXPECT_EQ(plan->environment, device->environment());
}

// A simulated device whose executables take other times and cores than the simulation says.
class ChangedDevice : public Device {
 public:
  struct Change {
    double factor = 1;  // Of the time of a run.
    std::vector<int> active_cores = {};
  };
  using ChangeOf = std::function<Change(const Plan& plan)>;

  ChangedDevice(Device& device, ChangeOf change)
      : Device({device.spec(), device.environment(), true}),
        device_(device),
        change_(std::move(change)) {}

  StatusOr<std::vector<std::string>> Kernels(const GroupProblem& problem) override {
    return device_.Kernels(problem);
  }
  StatusOr<std::unique_ptr<Executable>> Build(const BuildRequest& request) override {
    AG_LET(auto executable, device_.Build(request));
    return std::make_unique<Changed>(std::move(executable), change_(request.plan));
  }
  StatusOr<Nanos> Canary() override { return device_.Canary(); }

 private:
  class Changed : public Executable {
   public:
    Changed(std::unique_ptr<Executable> executable, Change change)
        : executable_(std::move(executable)), factor_(change.factor) {
      active_cores_ = std::move(change.active_cores);
    }
    StatusOr<Nanos> Run(std::span<const Tensor> inputs, std::span<Tensor> outputs) override {
      AG_LET(const Nanos took, executable_->Run(inputs, outputs));
      return std::chrono::duration_cast<Nanos>(factor_ * took);
    }
    StatusOr<double> Time(const TimeRequest& request) override {
      AG_LET(const double ns, executable_->Time(request));
      return factor_ * ns;
    }

   private:
    std::unique_ptr<Executable> executable_;
    const double factor_;
  };

  Device& device_;
  const ChangeOf change_;
};

// By their outputs the groups take all cores, so that two streams promise nothing; as measured, one
// core each.
TEST(TunePlan, MeasuredCoresPromiseSeveralStreams) {
  const TempDir folder = *TempDir::Make("tune-plan-test");
  const std::string path = folder.path() + "/blocks.spec";
  DeviceSpec spec = SmallSpec();
  spec.block_outputs = 1;
  ASSERT_TRUE(WriteFileAtomically(path, FormatDeviceSpec(spec)).ok());
  const auto device = *OpenDevice("sim:" + path);
  EXPECT_EQ(UsedStreams(Tune(kBeside, *device, 0)), 1);
  ChangedDevice one_core(*device, [](const Plan& plan) {
    return ChangedDevice::Change{.factor = UsedStreams(plan) > 1 ? 0.5 : 1, .active_cores = {1}};
  });
  EXPECT_EQ(UsedStreams(Tune(kBeside, one_core, 0)), 2);
}

TEST(TunePlan, TakesTheLayoutOfTheFasterWholePlan) {
  constexpr std::string_view kConvolutions = R"(
input x f32[1,16,8,8]
w = const f32[16,16,3,3] seed 1
b = const f32[16] seed 2
c = relu(conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1])
d = relu(conv(c, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1])
output relu(conv(d, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1])
)";
  const auto device = *OpenDevice("sim:" AG_SOURCE_DIR "/deploy/devices/cpu.spec");
  const auto layout_of = [&](Device& on) {
    const Plan plan = Tune(kConvolutions, on, 1);
    const auto conv = std::ranges::find(plan.groups, "conv", &Group::pattern);
    return conv->outputs[0].layout;
  };
  const Layout cheapest = layout_of(*device);
  ChangedDevice slow(*device, [cheapest](const Plan& plan) {
    const auto has_it = [&](const Group& group) { return group.outputs[0].layout == cheapest; };
    const bool is_slow = std::ranges::count_if(plan.groups, has_it) >= 2;
    return ChangedDevice::Change{.factor = is_slow ? 3.0 : 1.0};
  });
  EXPECT_NE(layout_of(slow), cheapest);
}

// By less than what is called FASTER.
TEST(TunePlan, TakesTheGuessedPlanWhereItIsALittleFaster) {
  const auto device = *OpenDevice("sim:small");
  const auto is_guessed = [](const Plan& plan) {
    return std::ranges::all_of(plan.groups, &std::string::empty, &Group::kernel);
  };
  for (const double factor : {0.996, 1.004}) {
    ChangedDevice changed(*device, [&](const Plan& plan) {
      return ChangedDevice::Change{.factor = is_guessed(plan) ? factor : 1};
    });
    EXPECT_EQ(is_guessed(Tune(kChain, changed, 0)), factor < 1);
  }
}

TEST(TunePlan, UngroupedOperatorsStayOnOneStream) {
  const auto device = *OpenDevice("sim:small");
  const auto plan = TunePlan(GraphOf(kBeside), *device, {.grouped = false});
  ASSERT_EQ(ToString(plan.status()), "OK");
  EXPECT_EQ(UsedStreams(*plan), 1);
}

}  // namespace
}  // namespace ag
