#include "runtime/tuned_plans.h"

#include <cstdlib>

#include "base/file.h"

namespace ag {
namespace {

// Returns the variable's value when it is an absolute path, else "" (XDG's rule).
std::string AbsolutePath(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && value[0] == '/' ? value : "";
}

}  // namespace

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
