// Groups as a cover finds them: their operators and times. Estimates need no more. Ports, names and
// kernels are made of them where someone asks. Pure functions, apart from what the times measure.
#pragma once

#include <span>
#include <vector>

#include "plan/fusion/group_time.h"
#include "plan/spec/node_layouts.h"

namespace ag {

struct BriefGroup {
  enum class Kind : uint8_t {
    kOperators,  // Of a pattern of the spec.
    kView,       // One movement operator, or a reorder that changes no byte.
    kReorder,
    kCopy,  // A reorder of a port to itself.
  };
  Kind kind = Kind::kOperators;
  int pattern = -1;   // kOperators: in DeviceSpec::patterns.
  int begin = 0;      // Its operators are those in BriefGroups::nodes from here on,
  int end = 0;        // up to here; ascending, the last one is the root. None: a reorder.
  Port from, to;      // Of a reorder; a copy of a constant reads nothing.
  BriefTime time;     // Of a view: 0.
  LocalKey key = {};  // Of the group's problem; a view has none.
};

// In topological order.
struct BriefGroups {
  std::vector<BriefGroup> groups;
  std::vector<NodeId> nodes;  // Of the groups; some may be of none.
  NodeLayouts layouts;

  std::span<const NodeId> NodesOf(const BriefGroup& group) const {
    return std::span(nodes).subspan(static_cast<size_t>(group.begin),
                                    static_cast<size_t>(group.end - group.begin));
  }
};

// What groups are made for; all must outlive the call.
struct BriefSetting {
  const Graph& graph;
  const DeviceSpec& spec;
  const Policy& policy;
  int cores = 0;  // GroupingOptions::cores.
};

// Returns one of `groups` with its ports, without its kernel.
Group WholeGroup(const BriefSetting& setting, const BriefGroups& groups, const BriefGroup& group);

// Returns the time of the group of WholeGroup, in full.
GroupTime WholeTime(const BriefSetting& setting, const BriefGroup& brief, const Group& group,
                    GroupTimes& times);

// Whether the group's time is an estimate; a view needs none.
inline bool IsEstimated(const BriefGroup& group) {
  return group.time.state == TimeState::kEstimated && group.kind != BriefGroup::Kind::kView;
}

// Returns MixedEstimateNs of the whole groups (plan/fusion/group_dependencies.h).
double MixedEstimateNs(const Graph& graph, const BriefGroups& groups, double alpha);

}  // namespace ag
