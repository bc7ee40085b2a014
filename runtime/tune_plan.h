// Tuning: makes a plan whose groups, layouts, kernels and streams come from measurements on the
// device, for a session whose model carries no plan that fits. One thread at a time for one device.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "device/api/device.h"

namespace ag {

struct TuningOptions {
  bool grouped = true;                    // False: every operator by itself.
  bool pieces = true;                     // As GroupingOptions.
  std::vector<std::string> without = {};  // Likewise.
  // 0: as many streams as measure best. Above: greedy list scheduling on this many
  // (plan/schedule/schedule.h).
  int streams = 0;
  int cores = 0;  // Of each group; 0: all, or as streams want.
  // Whether parts of a batch may run one after the other, where that is faster.
  bool instances = true;
  std::optional<Layout> layout = std::nullopt;  // Layout of contractions; nothing: the cheapest.
  // The folder of tuned plans (tuned_plans.h); empty: none. A plan there that is damaged or does
  // not fit is made anew.
  std::string folder = {};
  bool must_keep = true;  // False: an unwritable folder only logs a warning.
  bool renew = false;     // Write to the folder without reading from it.
};

// Times every kernel of every group, makes a plan by these times, times it beside plans of one
// layout (it stays unless one is FASTER), and compares kernels that are close inside the plan. With
// options.streams == 0 and grouping, also refines up to two plans on several streams that promise a
// gain by simulation and times them beside the plan of one stream, which stays unless another is
// FASTER. So is the plan by estimates, that of a session that measures nothing. Where the
// samples of the batch do not depend on each other (graph/batch/samples.h), the same for each of
// PartsToTry (plan/schedule/planner.h), and plans in segments by the times of all sizes
// (plan/schedule/segmenting.h), timed beside the plan of the whole batch, which stays unless one is
// FASTER. The plan's environment is the device's.
// Looks in no folder. kUnimplemented: the device cannot run an operator. REQUIRES: nothing else
// measures on the host meanwhile (MeasureAlone).
StatusOr<Plan> TunePlan(const Graph& graph, Device& device, const TuningOptions& options);

// Returns the plan of a session that measures nothing (GuessPlan, plan/schedule/planner.h), of the
// whole batch, without an environment. kUnimplemented: as TunePlan.
StatusOr<Plan> GuessedPlan(const Graph& graph, const DeviceSpec& spec,
                           const TuningOptions& options = {});

// Returns the plans of which TunePlan takes the fastest: of the whole batch first, then of parts,
// then in segments.
StatusOr<std::vector<Plan>> PlansToCompare(const Graph& graph, Device& device,
                                           const TuningOptions& options);

}  // namespace ag
