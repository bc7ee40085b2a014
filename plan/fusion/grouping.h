// Groups of a graph under a device spec. Dynamic programming over the spec's patterns forms groups
// (the operator fusion of AutoGTCO), layouts are chosen, and group times give one number. Functions
// are thread-safe when their GroupTimes is.
#pragma once

#include <vector>

#include "plan/fusion/brief_groups.h"
#include "plan/fusion/group_time.h"
#include "plan/plan.h"

namespace ag {

struct GroupingOptions {
  bool grouped = true;  // False: every operator is its own group (`unfused`).
  bool pieces = true;   // False: no trees and no further outputs, whatever the patterns' marks say.
  std::vector<std::string> without = {};  // Patterns of the spec of which no group is formed.
  int cores = 0;                          // Cores per group; 0: all.
  // The layout that contractions prefer: a contraction takes it when its pattern lists it and it
  // fits, else the first fitting layout of the pattern. Nothing: the layout of LayoutChoices with
  // the cheapest groups, including reorders.
  std::optional<Layout> layout = std::nullopt;
  // Whether the layout may change along the graph where that is cheaper
  // (plan/fusion/layout_runs.h). True for plans that will run; false compares graphs well enough in
  // a search, and forms one cover less: it takes channels_last8 wherever that pads channels.
  bool mixed_layouts = false;
};

// Returns the layouts that contractions of `graph` may prefer on this device, in the order of its
// patterns, at least one. Plain is included only when there is no other, channels_last8 only when
// it pads the channels of a contraction.
std::vector<Layout> LayoutChoices(const Graph& graph, const DeviceSpec& spec);

// Returns groups with layouts and reorders, without schedule and places: the cover of the graph by
// the spec's patterns with the least Cost (docs/fusion.md says among which covers).
// Several operators stay in one group unless other groups are cheaper by more than the noise of its
// time: in a measurement of one group alone, its inputs lie in the caches.
// kUnimplemented: no pattern of the device takes an operator, which the message names.
//
// A group is a connected piece that ends at one operator: a path, in which each operator reads the
// one before by an edge that has no other reader; and more where the marks of its pattern say so
// (docs/device-spec.md). Outputs are those of the last operator, then those of others that are read
// outside as well.
// Layouts are chosen first (options.layout, plan/spec/node_layouts.h), so a group's time does not
// depend on its neighbours. A movement operator is a view, which costs nothing, where plan/views.h
// allows it. One reorder per edge and layout serves all readers. Groups are in topological order.
// Deterministic.
StatusOr<std::vector<Group>> FormGroups(const Graph& graph, const DeviceSpec& spec,
                                        const Policy& policy, GroupTimes& times,
                                        const GroupingOptions& options = {});

// Groups with their times: times[i] belongs to groups[i] and is 0 for a view. Measured times also
// fill in `kernel`.
struct TimedGroups {
  std::vector<Group> groups;
  std::vector<GroupTime> times;
};
// Returns the groups of FormGroups with the times that it computed anyway.
StatusOr<TimedGroups> FormTimedGroups(const Graph& graph, const DeviceSpec& spec,
                                      const Policy& policy, GroupTimes& times,
                                      const GroupingOptions& options = {});

// Returns the groups of FormTimedGroups without what estimates do not read, its errors as well.
StatusOr<BriefGroups> FormBriefGroups(const Graph& graph, const DeviceSpec& spec,
                                      const Policy& policy, GroupTimes& times,
                                      const GroupingOptions& options = {});
// Returns these groups as FormTimedGroups does. REQUIRES: `times` knows what it knew then.
TimedGroups WholeGroups(const BriefSetting& setting, const BriefGroups& groups, GroupTimes& times);

}  // namespace ag
