// The false-verdict rate of the final comparison: one plan against itself many times (an A/A test).
//   build/aa_verdicts [RUNS [MODEL [DEVICE]]]     (200 squeezenet cpu)
// Builds two executables from the same plan, like a candidate and the input. Prints each verdict's
// share; exits with 1 when more than 1 % of the runs are FASTER or SLOWER.
#include <cstdio>
#include <cstdlib>
#include <map>

#include "device/open_device.h"
#include "device/profile/profile.h"
#include "graph/inputs/make_inputs.h"
#include "plan/schedule/planner.h"
#include "worker/execute.h"
#include "zoo/zoo.h"

namespace ag {
namespace {

constexpr double kFalseShareMax = 0.01;

StatusOr<Plan> GroupedPlan(const Graph& graph, const Device& device) {
  RooflineTimes times(device.spec());
  return MakePlan(graph, device.spec(), Policy(), times, {}, 1);
}

StatusOr<bool> Compare(int runs, const std::string& model, const std::string& device_name) {
  AG_LET(const std::unique_ptr<Device> device, OpenDevice(device_name));
  MemoryWeights weights;
  AG_LET(const Graph graph, BuildZooModel(model, {}, &weights));
  AG_LET(const Plan plan, GroupedPlan(graph, *device));
  AG_LET(const std::unique_ptr<Executable> a, device->Build({graph, plan, weights}));
  AG_LET(const std::unique_ptr<Executable> b, device->Build({graph, plan, weights}));
  AG_LET(const auto alone, MeasureAlone(*device));
  std::map<Verdict, int> counts;
  for (int run = 0; run < runs; ++run) {
    std::vector<PlanToTime> plans;
    for (Executable* executable : {a.get(), b.get()}) {
      plans.push_back({executable, UsualInputs(graph, 1), EmptyOutputs(graph)});
    }
    AG_LET(const std::vector<PlanTiming> timings,
           ProfilePlans(*device, std::move(plans), {}, RealClock()));
    AG_TRY(timings[1].status);
    ++counts[timings[1].verdict];
  }
  std::printf("%s on %s against itself, %d runs:", model.c_str(), device_name.c_str(), runs);
  for (const auto& [verdict, count] : counts) {
    std::printf("  %s %d (%.1f %%)", std::string(VerdictName(verdict)).c_str(), count,
                100.0 * count / runs);
  }
  std::printf("\n");
  return counts[Verdict::kFaster] + counts[Verdict::kSlower] <= kFalseShareMax * runs;
}

}  // namespace
}  // namespace ag

int main(int argc, char** argv) {
  const int runs = argc > 1 ? std::atoi(argv[1]) : 200;
  const auto good =
      ag::Compare(runs, argc > 2 ? argv[2] : "squeezenet", argc > 3 ? argv[3] : "cpu");
  if (!good.ok()) {
    std::fprintf(stderr, "%s\n", ag::Message(good.status()).c_str());
    return 2;
  }
  return *good ? 0 : 1;
}
