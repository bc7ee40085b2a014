#include "runtime/tuned_plans.h"

#include <cstdlib>

#include "base/file.h"
#include "base/log.h"
#include "device/profile/profile.h"
#include "plan/format/plan_codec.h"
#include "plan/format/plan_validate.h"

namespace ag {
namespace {

// Returns the variable's value when it is an absolute path, else "" (XDG's rule).
std::string AbsolutePath(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && value[0] == '/' ? value : "";
}

// The name is a digest of all that the plan is bound to.
std::string PathOf(const Graph& graph, const Device& device, const TuningOptions& options) {
  std::string name =
      Sha256(graph.digest().Hex() + "\n" + device.environment() + "\n" + Policy().Text()).Hex();
  if (!options.grouped) name += "-unfused";
  if (!options.pieces) name += "-paths";
  if (options.streams > 0) name += fmt::format("-s{}", options.streams);
  if (!options.instances) name += "-whole";
  if (options.layout) name += fmt::format("-{}", LayoutName(*options.layout));
  return fmt::format("{}/{}.plan", options.folder, name);
}

}  // namespace

StatusOr<Plan> TunedPlan(const Graph& graph, Device& device, const TuningOptions& options) {
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

std::string DefaultTunedPlans() {
  constexpr std::string_view kFolder = "/autograph/tuned-plans";
  if (const std::string caches = AbsolutePath("XDG_CACHE_HOME"); !caches.empty()) {
    return fmt::format("{}{}", caches, kFolder);
  }
  const std::string home = AbsolutePath("HOME");
  return home.empty() ? "" : fmt::format("{}/.cache{}", home, kFolder);
}

StatusOr<Plan> ReadTunedPlan(const std::string& path, const Graph& graph, const Device& device) {
  AG_LET(const std::string bytes, ReadFile(path));
  AG_LET(Plan plan, DecodePlan(bytes));
  if (plan.environment != device.environment()) {
    return Err(StatusCode::kFailedPrecondition, "{}: made for environment {}, this is {}", path,
               plan.environment, device.environment());
  }
  if (plan.policy.Text() != Policy().Text()) {
    return Err(StatusCode::kFailedPrecondition, "{}: made for policy {}, this is {}", path,
               plan.policy.Text(), Policy().Text());
  }
  AG_TRY(ValidatePlan(graph, plan, device.spec()));
  return plan;
}

Status WriteTunedPlan(const std::string& path, const Plan& plan) {
  AG_TRY(MakeDirs(path.substr(0, path.rfind('/'))), "tuned plan");
  AG_TRY(WriteFileAtomically(path, EncodePlan(plan)), "tuned plan");
  return OkStatus();
}

}  // namespace ag
