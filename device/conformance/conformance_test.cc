// Runs the suite on every device that this machine can open. A failure prints the case; run one
// case with --gtest_filter='*<name>*'.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>

#include "absl/strings/str_replace.h"
#include "device/conformance/cases.h"
#include "device/conformance/suite.h"
#include "device/cpu/cpu_device.h"
#include "device/cuda/launch/testing/host_device.h"
#include "device/open_device.h"
#include "device/sim/sim_device.h"
#include "graph/testing/function_cases.h"
#include "graph/text_form.h"

namespace ag {
namespace {

constexpr char kGpu[] = "cuda:0";

Device& OpenOnce(const std::string& name) {
  static std::map<std::string, std::unique_ptr<Device>> devices;
  std::unique_ptr<Device>& device = devices[name];
  if (device != nullptr) return *device;
  if (name == "cpu") {
    device = *OpenCpuDevice();
  } else if (name == "sim") {
    // With the CPU's own spec the simulation takes the same plans.
    device = *OpenSimDevice(FormatDeviceSpec((*OpenCpuDevice())->spec()));
  } else if (name == "cuda_host" || name == "cuda_generated") {
    const bool is_generated = name == "cuda_generated";
    DeviceSpec spec = OpenOnce("sim:h200").spec();
    spec.cache_bytes = 1 << 20;  // The host would take seconds to fill an H200's caches twice.
    device = cuda::OpenHostDevice(
        is_generated ? cuda::HostKernels::kGenerated : cuda::HostKernels::kReference,
        std::move(spec));
  } else {
    device = *OpenDevice(name);
  }
  return *device;
}

struct Param {
  std::string device;
  std::string precision;
  ConformanceCase test_case;
};

std::vector<Param> AllParams() {
  std::vector<std::pair<std::string, std::string>> devices = {
      {"cpu", "fp32"}, {"sim", "fp32"}, {"cuda_host", "fp32"}, {"cuda_host", "fp16"}};
  // The host's compiler compiles each kernel in half a second (tests/long/cuda_host.sh).
  if (std::getenv("AUTOGRAPH_TEST_GENERATED") != nullptr) {
    for (const char* precision : {"fp32", "fp16", "bf16"}) {
      devices.emplace_back("cuda_generated", precision);
    }
  }
  if (OpenOnce("cpu").spec().Offers("bf16")) devices.emplace_back("cpu", "bf16");
  if (OpenDevice(kGpu).ok()) {
    for (const char* precision : {"fp32", "tf32", "fp16", "bf16"}) {
      if (OpenOnce(kGpu).spec().Offers(precision)) devices.emplace_back(kGpu, precision);
    }
  }
  std::vector<Param> params;
  for (const auto& [device, precision] : devices) {
    for (const ConformanceCase& c : OperatorCases()) params.push_back({device, precision, c});
    for (const ConformanceCase& c : NetworkCases()) params.push_back({device, precision, c});
  }
  return params;
}

std::string NameOf(const testing::TestParamInfo<Param>& info) {
  std::string name =
      info.param.device + "_" + info.param.precision + "_" + std::string(info.param.test_case.name);
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
}

class Conformance : public testing::TestWithParam<Param> {
 protected:
  Device& device() { return OpenOnce(GetParam().device); }
  const std::string& precision() { return GetParam().precision; }
  std::string_view text() { return GetParam().test_case.text; }
};

TEST_P(Conformance, Plans) {
  EXPECT_EQ(ToString(CheckPlans(device(), text(), precision())), "OK") << text();
}
TEST_P(Conformance, Kernels) {
  EXPECT_EQ(ToString(CheckKernels(device(), text(), precision())), "OK") << text();
}
TEST_P(Conformance, Layouts) {
  EXPECT_EQ(ToString(CheckLayouts(device(), text(), precision())), "OK") << text();
}

TEST_P(Conformance, Pairs) {
  EXPECT_EQ(ToString(CheckPairs(device(), text(), precision())), "OK") << text();
}

TEST_P(Conformance, Instances) {
  EXPECT_EQ(ToString(CheckInstances(device(), text(), precision()).status()), "OK") << text();
}

TEST_P(Conformance, Segments) {
  EXPECT_EQ(ToString(CheckSegments(device(), text(), precision()).status()), "OK") << text();
}

INSTANTIATE_TEST_SUITE_P(All, Conformance, testing::ValuesIn(AllParams()), NameOf);

// The cpu computes in f32 what a model states as f16 or bf16: every case with these types instead,
// but those whose numbers they cannot hold.
TEST(ConformanceCases, HaveSixteenBitsOnTheCpu) {
  std::vector<ConformanceCase> cases(OperatorCases().begin(), OperatorCases().end());
  cases.insert(cases.end(), NetworkCases().begin(), NetworkCases().end());
  Device& device = OpenOnce("cpu");
  int taken = 0;
  for (const ConformanceCase& c : cases) {
    for (const char* const type : {"f16", "bf16"}) {
      const std::string text =
          absl::StrReplaceAll(absl::string_view(c.text.data(), c.text.size()), {{"f32", type}});
      if (text == c.text) continue;
      ++taken;
      for (const auto check : {CheckPlans, CheckKernels, CheckLayouts}) {
        EXPECT_EQ(ToString(check(device, text, "fp32")), "OK") << c.name << "\n" << text;
      }
    }
  }
  EXPECT_GT(taken, 200);
}

// Of the cases enough have a batch that can be cut.
TEST(ConformanceCases, RunInInstancesAndSegments) {
  int plans = 0, segments = 0;
  for (const auto& cases : {OperatorCases(), NetworkCases()}) {
    for (const ConformanceCase& c : cases) {
      const auto checked = CheckInstances(OpenOnce("cpu"), c.text);
      ASSERT_EQ(ToString(checked.status()), "OK") << c.name;
      plans += *checked;
      const auto in_segments = CheckSegments(OpenOnce("cpu"), c.text);
      ASSERT_EQ(ToString(in_segments.status()), "OK") << c.name;
      segments += *in_segments;
    }
  }
  EXPECT_GT(plans, 100);
  EXPECT_GT(segments, 60);
}

// One network is enough, because a cold run is the same for all operators.
TEST(ConformanceCases, RunFromEvictedCaches) {
  std::vector<std::string> devices = {"cpu", "sim", "cuda_host"};
  if (OpenDevice(kGpu).ok()) devices.emplace_back(kGpu);
  for (const std::string& device : devices) {
    EXPECT_EQ(ToString(CheckColdRuns(OpenOnce(device), NetworkCases()[0].text)), "OK") << device;
  }
}

// Returns whether oneDNN's relu and clip, which give a bound for NaN, stand behind a product.
bool LosesNan(const std::string& device, OpKind op) {
  return device == "cpu" && (op == OpKind::kRelu || op == OpKind::kHardSigmoid);
}

// NaN, infinities and large values through every function: alone, and fused behind a product.
TEST(ConformanceCases, FunctionsGiveTheExpectedValues) {
  std::vector<std::string> devices = {"cpu", "cuda_host"};
  if (OpenDevice(kGpu).ok()) devices.emplace_back(kGpu);
  for (const std::string& device : devices) {
    for (const FunctionCase& c : FunctionCases()) {
      const std::string alone = StatementsOf(c, fmt::format("[{}]", c.x.size()));
      std::vector<std::vector<double>> inputs{c.x};
      if (c.y.size() > 0) inputs.push_back(c.y);
      std::vector<double> expected = c.expected;
      EXPECT_EQ(ToString(CheckValues(OpenOnce(device), alone, inputs, expected)), "OK")
          << c.name << " on " << device;
      if (!Has(OpOf(c), kActivation)) continue;
      if (LosesNan(device, OpOf(c))) {
        ASSERT_TRUE(std::isnan(expected.back()));
        expected.pop_back();
        inputs[0].pop_back();
      }
      const std::string fused = StatementsOf(
          c, "",
          fmt::format("input i f32[{},1]; w = const f32[1,1] {{1}}; x = matmul(i, w); ",
                      expected.size()));
      EXPECT_EQ(ToString(CheckValues(OpenOnce(device), fused, inputs, expected)), "OK")
          << c.name << " fused on " << device;
    }
  }
}

TEST(ConformanceCases, RunOnAGpu) {
  const auto gpu = OpenDevice(kGpu);
  if (!gpu.ok()) GTEST_SKIP() << Message(gpu.status());
  EXPECT_EQ((*gpu)->spec().name, "cuda");
}

TEST(ConformanceCases, CoverEveryOperator) {
  std::set<OpKind> seen;
  for (const ConformanceCase& c : OperatorCases()) {
    std::string text(c.text);
    std::replace(text.begin(), text.end(), ';', '\n');
    MemoryWeights weights;
    const StatusOr<Graph> graph = ParseGraph(text, &weights);
    ASSERT_EQ(ToString(graph.status()), "OK") << c.name;
    for (const Node& node : graph->nodes()) seen.insert(node.op);
  }
  for (const OpInfo& info : AllOps()) {
    if (info.kind == OpKind::kOpaque) continue;
    EXPECT_TRUE(seen.contains(info.kind)) << info.name;
  }
}

}  // namespace
}  // namespace ag
