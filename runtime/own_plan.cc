#include "runtime/own_plan.h"

#include <algorithm>

#include "base/log.h"
#include "device/profile/profile.h"
#include "runtime/tune_plan.h"
#include "runtime/tuned_plans.h"

namespace ag {
namespace {

std::string PathOf(const Graph& graph, const Device& device, const OwnPlanOptions& options) {
  std::string name = PlanKey(graph.digest(), device.environment(), Policy());
  if (!options.grouped) name += "-eager";
  if (options.streams > 0) name += fmt::format("-s{}", options.streams);
  if (options.layout) name += fmt::format("-{}", LayoutName(*options.layout));
  return fmt::format("{}/{}.plan", options.folder, name);
}

}  // namespace

StatusOr<Plan> MakeOwnPlan(const Graph& graph, Device& device, const OwnPlanOptions& options) {
  if (!options.tune) {
    RooflineTimes times(device.spec());
    return PlanByTimes(graph, device.spec(), times, options, std::max(1, options.streams));
  }
  const bool is_kept = !options.folder.empty();
  const std::string path = PathOf(graph, device, options);
  const auto known = [&]() -> StatusOr<Plan> {
    if (!is_kept || options.renew) return Err(StatusCode::kNotFound, "not looked for");
    return ReadTunedPlan(path, graph, device);
  };
  if (StatusOr<Plan> plan = known(); plan.ok()) return plan;
  AG_LET(const auto alone, MeasureAlone(device));
  // Another session may have tuned the same model while this one waited.
  if (StatusOr<Plan> plan = known(); plan.ok()) return plan;
  AG_LET(Plan plan, TunePlan(graph, device, options));
  if (!is_kept) return plan;
  const Status written = WriteTunedPlan(path, plan);
  if (options.must_keep) AG_TRY(written);
  if (!written.ok()) LogWarn("a tuned plan is not kept: {}", Message(written));
  return plan;
}

std::string PlanKey(const Digest& graph, const Environment& environment, const Policy& policy) {
  return Sha256(graph.Hex() + "\n" + environment + "\n" + policy.Text()).Hex();
}

}  // namespace ag
