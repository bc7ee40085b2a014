#include "runtime/own_plan.h"

#include <algorithm>

#include "base/file.h"
#include "device/profile/refine_kernels.h"
#include "plan/schedule.h"

namespace ag {
namespace {

// A third of what the service takes for a group that it remembers for good.
constexpr Nanos kGroupTime{10'000'000};

StatusOr<Plan> PlanBy(GroupTimes& times, const Graph& graph, const DeviceSpec& spec,
                      const OwnPlanOptions& options) {
  const GroupingOptions grouping{
      .grouped = options.grouped, .layout = options.layout, .mixed_layouts = options.tune};
  return MakePlan(graph, spec, Policy(), times, grouping, options.streams);
}

std::string PathOf(const Graph& graph, const Device& device, const OwnPlanOptions& options) {
  const std::string key = PlanKey(graph.digest(), device.environment(), Policy());
  return fmt::format("{}/{}{}-s{}{}.plan", options.folder, key, options.grouped ? "" : "-eager",
                     options.streams,
                     options.layout ? "-" + std::string(LayoutName(*options.layout)) : "");
}

StatusOr<Plan> ReadTuned(const std::string& path, const Graph& graph, const DeviceSpec& spec) {
  AG_LET(const std::string bytes, ReadFile(path));
  AG_LET(Plan plan, DecodePlan(bytes));
  AG_TRY(ValidatePlan(graph, plan, spec));
  return plan;
}

}  // namespace

StatusOr<Plan> MakeOwnPlan(const Graph& graph, Device& device, const OwnPlanOptions& options) {
  if (!options.tune) {
    RooflineTimes times(device.spec());
    return PlanBy(times, graph, device.spec(), options);
  }
  const std::string path = PathOf(graph, device, options);
  if (!options.folder.empty()) {
    StatusOr<Plan> known = ReadTuned(path, graph, device.spec());
    if (known.ok()) return known;
  }
  AG_LET(const auto alone, MeasureAlone(device));
  MeasuredTimes times(device, {.group_time = kGroupTime}, RealClock());
  AG_LET(Plan plan, PlanBy(times, graph, device.spec(), options));
  AG_LET(plan, RefineKernels(graph, std::move(plan), device, times));
  plan.environment = device.environment();
  if (options.folder.empty()) return plan;
  AG_TRY(MakeDirs(options.folder));
  AG_TRY(WriteFileAtomically(path, EncodePlan(plan)), "tuned plan");
  return plan;
}

std::string PlanKey(const Digest& graph, const Environment& environment, const Policy& policy) {
  return Sha256(graph.Hex() + "\n" + environment + "\n" + policy.Text()).Hex();
}

}  // namespace ag
