// The effect of caches: groups and models with their data in the caches and from evicted ones
// (docs/devices.md, "Cold caches"), sample by sample in turns.
//   build/cold_cache [DEVICE [MODEL...]]          (DEVICE: cpu; MODEL: of the zoo)
// Prints a line for each: medians of both, cold over warm, megabytes that a run moves once.
#include <algorithm>
#include <cstdio>

#include "device/open_device.h"
#include "device/profile/profile.h"
#include "graph/inputs/make_inputs.h"
#include "graph/text_form.h"
#include "plan/interval.h"
#include "plan/schedule/planner.h"
#include "rules/match/rule_clean_up.h"
#include "rules/sets/built_in_rules.h"
#include "worker/execute.h"
#include "zoo/zoo.h"

namespace ag {
namespace {

constexpr int kPairs = 31;

struct Row {
  const char* name;
  const char* text;
};
constexpr Row kRows[] = {
    {"matmul, 1 MiB of weights",
     "input x f32[1,512]\nw = const f32[512,512] seed 1\noutput y = matmul(x, w)\n"},
    {"matmul, 4 MiB of weights",
     "input x f32[1,1024]\nw = const f32[1024,1024] seed 1\noutput y = matmul(x, w)\n"},
    {"matmul, 16 MiB of weights",
     "input x f32[1,2048]\nw = const f32[2048,2048] seed 1\noutput y = matmul(x, w)\n"},
    {"conv 3x3, 2.3 MiB of weights",
     "input x f32[1,256,14,14]\nw = const f32[256,256,3,3] seed 1\nb = const f32[256] seed 2\n"
     "output y = relu(conv(x, w, b) strides=[1,1] pads=[1,1,1,1] dilations=[1,1])\n"},
    {"relu, 1 MiB in and out", "input x f32[262144]\noutput y = relu(x)\n"},
};

Status PrintRow(const std::string& name, const Graph& graph, const WeightSource& weights,
                Device& device) {
  RooflineTimes times(device.spec());
  AG_LET(const Plan plan, MakePlan(graph, device.spec(), Policy(), times, {}, 1));
  AG_LET(const std::unique_ptr<Executable> executable, device.Build({graph, plan, weights}));
  const std::vector<Tensor> inputs = UsualInputs(graph, 1);
  std::vector<Tensor> outputs = EmptyOutputs(graph);
  std::vector<double> warm, cold;
  for (int i = 0; i < kPairs; ++i) {
    AG_LET(const double cold_ns, executable->Time({inputs, outputs, 1, Caches::kEvicted}));
    AG_TRY(executable->Time({inputs, outputs}));  // Brings its data back into the caches.
    AG_LET(const double warm_ns, executable->Time({inputs, outputs}));
    cold.push_back(cold_ns);
    warm.push_back(warm_ns);
  }
  double bytes = 0;
  for (const Group& group : plan.groups) {
    if (group.pattern != kViewPattern) bytes += WorkOf(ExtractGroup(graph, group, {})).bytes;
  }
  const double warm_us = Median(warm) / 1e3, cold_us = Median(cold) / 1e3;
  std::printf("%-30s warm %10.1f us  cold %10.1f us  %6.2fx  %7.1f MB\n", name.c_str(), warm_us,
              cold_us, cold_us / warm_us, bytes / 1e6);
  return OkStatus();
}

Status PrintRows(const std::string& device_name, const std::vector<std::string>& models) {
  AG_LET(const std::unique_ptr<Device> device, OpenDevice(device_name));
  AG_LET(const auto alone, MeasureAlone(*device));
  for (const Row& row : kRows) {
    MemoryWeights weights;
    AG_LET(const Graph graph, ParseGraph(row.text, &weights));
    AG_TRY(PrintRow(row.name, graph, weights, *device), "{}", row.name);
  }
  for (const std::string& model : models) {
    MemoryWeights weights;
    AG_LET(const Graph zoo, BuildZooModel(model, {}, &weights));
    AG_LET(const Graph graph, CleanUp(zoo, BuiltInRules()));
    AG_TRY(PrintRow(model, graph, weights, *device), "{}", model);
  }
  return OkStatus();
}

}  // namespace
}  // namespace ag

int main(int argc, char** argv) {
  const ag::Status status = ag::PrintRows(
      argc > 1 ? argv[1] : "cpu", std::vector<std::string>(argv + std::min(argc, 2), argv + argc));
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", ag::Message(status).c_str());
  return 1;
}
