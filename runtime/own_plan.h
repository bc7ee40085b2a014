// The plan of a session whose model carries none that fits: made here, by estimate or by measuring.
#pragma once

#include <optional>
#include <string>

#include "device/api/device.h"

namespace ag {

struct OwnPlanOptions {
  bool grouped = true;  // false: every operator by itself.
  // 0: one, or with `tune` as many as measure best. Beyond 1: greedy list scheduling on so many
  // (plan/schedule.h).
  int streams = 0;
  bool tune = false;                            // From measurements on `device` (tune_plan.h).
  std::optional<Layout> layout = std::nullopt;  // What contractions prefer; nothing: the cheapest.
  // Where tuned plans are kept (tuned_plans.h). Empty: nowhere. One that is damaged or does not fit
  // is made anew.
  std::string folder = {};
  bool must_keep = true;  // false: a folder that cannot be written to is a line in the log.
  bool renew = false;     // The folder is written to, not looked at.
};

// kUnimplemented: an operator that the device cannot run.
StatusOr<Plan> MakeOwnPlan(const Graph& graph, Device& device, const OwnPlanOptions& options);

// The metadata key of a plan: a digest of what it is bound to.
std::string PlanKey(const Digest& graph, const Environment& environment, const Policy& policy);

}  // namespace ag
