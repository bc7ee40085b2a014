#include "runtime/own_plan.h"

#include <algorithm>

#include "base/file.h"
#include "device/profile/profile.h"
#include "runtime/tune_plan.h"

namespace ag {
namespace {

std::string PathOf(const Graph& graph, const Device& device, const OwnPlanOptions& options) {
  std::string name = PlanKey(graph.digest(), device.environment(), Policy());
  if (!options.grouped) name += "-eager";
  if (options.streams > 0) name += fmt::format("-s{}", options.streams);
  if (options.layout) name += fmt::format("-{}", LayoutName(*options.layout));
  return fmt::format("{}/{}.plan", options.folder, name);
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
    return PlanByTimes(graph, device.spec(), times, options, std::max(1, options.streams));
  }
  const std::string path = PathOf(graph, device, options);
  if (!options.folder.empty()) {
    StatusOr<Plan> known = ReadTuned(path, graph, device.spec());
    if (known.ok()) return known;
  }
  AG_LET(const auto alone, MeasureAlone(device));
  AG_LET(Plan plan, TunePlan(graph, device, options));
  if (options.folder.empty()) return plan;
  AG_TRY(MakeDirs(options.folder));
  AG_TRY(WriteFileAtomically(path, EncodePlan(plan)), "tuned plan");
  return plan;
}

std::string PlanKey(const Digest& graph, const Environment& environment, const Policy& policy) {
  return Sha256(graph.Hex() + "\n" + environment + "\n" + policy.Text()).Hex();
}

}  // namespace ag
