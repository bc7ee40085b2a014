// The plan of a session whose model carries no plan that fits: made here, by estimate or by
// measuring. Thread-safe for separate devices.
#pragma once

#include <optional>
#include <string>

#include "device/api/device.h"

namespace ag {

struct OwnPlanOptions {
  bool grouped = true;  // False: every operator by itself.
  // 0: one stream, or with `tune` as many as measure best. Above 1: greedy list scheduling on this
  // many (plan/schedule.h).
  int streams = 0;
  bool tune = false;                            // Plan from measurements on `device` (tune_plan.h).
  std::optional<Layout> layout = std::nullopt;  // Layout of contractions; nothing: the cheapest.
  // The folder of tuned plans (tuned_plans.h); empty: none. A plan there that is damaged or does
  // not fit is made anew.
  std::string folder = {};
  bool must_keep = true;  // False: an unwritable folder only logs a warning.
  bool renew = false;     // Write to the folder without reading from it.
};

// Returns a plan for the graph on the device. Measures under the host's measuring lock (with
// `tune`). kUnimplemented: the device cannot run an operator.
StatusOr<Plan> MakeOwnPlan(const Graph& graph, Device& device, const OwnPlanOptions& options);

// Returns the metadata key of a plan: a digest of all that the plan is bound to.
std::string PlanKey(const Digest& graph, const Environment& environment, const Policy& policy);

}  // namespace ag
