// The suite on every device that this machine can open. A failure prints the case; run one with
// --gtest_filter='*<name>*'.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "device/conformance/cases.h"
#include "device/conformance/suite.h"
#include "device/cpu/cpu_device.h"
#include "device/sim/sim_device.h"
#include "graph/text_form.h"

namespace ag {
namespace {

Device& OpenOnce(const std::string& name) {
  static std::map<std::string, std::unique_ptr<Device>> devices;
  std::unique_ptr<Device>& device = devices[name];
  if (device != nullptr) return *device;
  if (name == "cpu") {
    device = *OpenCpuDevice();
  } else {
    // The CPU's own spec makes the simulation take the same plans.
    device = *OpenSimDevice(FormatDeviceSpec((*OpenCpuDevice())->spec()));
  }
  return *device;
}

struct Param {
  std::string device;
  ConformanceCase test_case;
};

std::vector<Param> AllParams() {
  std::vector<Param> params;
  for (const char* device : {"cpu", "sim"}) {
    for (const ConformanceCase& c : OperatorCases()) params.push_back({device, c});
    for (const ConformanceCase& c : NetworkCases()) params.push_back({device, c});
  }
  return params;
}

std::string NameOf(const testing::TestParamInfo<Param>& info) {
  std::string name = info.param.device + "_" + std::string(info.param.test_case.name);
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
}

class Conformance : public testing::TestWithParam<Param> {
 protected:
  Device& device() { return OpenOnce(GetParam().device); }
  std::string_view text() { return GetParam().test_case.text; }
};

TEST_P(Conformance, Plans) { EXPECT_EQ(ToString(CheckPlans(device(), text())), "OK") << text(); }
TEST_P(Conformance, Kernels) {
  EXPECT_EQ(ToString(CheckKernels(device(), text())), "OK") << text();
}
TEST_P(Conformance, Layouts) {
  EXPECT_EQ(ToString(CheckLayouts(device(), text())), "OK") << text();
}

INSTANTIATE_TEST_SUITE_P(All, Conformance, testing::ValuesIn(AllParams()), NameOf);

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
