// Plans of one layout each that are worth timing as a whole beside the plan that is cheapest by
// group times. Group times are taken alone, where a reorder takes half of what it takes in a plan,
// and do not tell layouts that are close.
#pragma once

#include <utility>
#include <vector>

#include "plan/format/plan_codec.h"
#include "plan/fusion/grouping.h"

namespace ag {

// How much longer such a plan may take by group times than the cheapest one.
inline constexpr double kCloseLayout = 1.15;

// Returns what `make` returns for each layout of LayoutChoices, if it is close to `cheapest` and
// another plan. Nothing when there is one choice only; a layout without a plan is left out. Made
// has `plan` and `makespan_ns`; make(layout) returns StatusOr<Made>.
template <class Made, class Make>
std::vector<std::pair<Layout, Made>> CloseLayoutPlans(const Graph& graph, const DeviceSpec& spec,
                                                      const Made& cheapest, Make&& make) {
  std::vector<std::pair<Layout, Made>> plans;
  const std::vector<Layout> choices = LayoutChoices(graph, spec);
  if (choices.size() < 2) return plans;
  for (const Layout layout : choices) {
    StatusOr<Made> made = make(layout);
    if (!made.ok() || made->makespan_ns > kCloseLayout * cheapest.makespan_ns) continue;
    if (EncodePlan(made->plan) == EncodePlan(cheapest.plan)) continue;
    plans.emplace_back(layout, *std::move(made));
  }
  return plans;
}

}  // namespace ag
