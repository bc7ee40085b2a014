#include "plan/fusion/brief_groups.h"

#include <algorithm>

#include "plan/fusion/cover.h"
#include "plan/fusion/group_problem.h"

namespace ag {
namespace {

// When what a graph's operators and reorders make is there, if every group begins as soon as its
// operands are there.
class BriefEnds {
 public:
  BriefEnds(const Graph& graph, const BriefGroups& groups)
      : graph_(graph), groups_(groups), end_ns_(static_cast<size_t>(graph.size())) {}

  // Returns the end of the group. REQUIRES: the groups before it were added.
  double Add(const BriefGroup& group) {
    if (group.begin == group.end) return AddReorder(group);
    double begin_ns = 0;
    const std::span<const NodeId> nodes = groups_.NodesOf(group);
    for (const NodeId id : nodes) {  // Those of the group itself have no end yet.
      const auto& inputs = graph_.node(id).inputs;
      for (size_t i = 0; i < inputs.size(); ++i) {
        const bool is_moved = !reordered_.empty() && !graph_.is_constant(inputs[i].node);
        const double ns = is_moved ? EndOf({inputs[i], groups_.layouts.Read(graph_, id, i)})
                                   : end_ns_[inputs[i].node];
        begin_ns = std::max(begin_ns, ns);
      }
    }
    const double end_ns = begin_ns + group.time.ns;
    for (const NodeId id : nodes) end_ns_[id] = end_ns;
    return end_ns;
  }

 private:
  struct Reordered {
    Port port;
    double end_ns = 0;
  };

  double AddReorder(const BriefGroup& group) {
    const bool reads = !graph_.is_constant(group.to.edge.node);
    const double end_ns = (reads ? EndOf(group.from) : 0) + group.time.ns;
    if (group.kind != BriefGroup::Kind::kCopy) reordered_.push_back({group.to, end_ns});
    return end_ns;
  }

  double EndOf(const Port& port) const {
    for (const Reordered& reordered : reordered_) {
      if (reordered.port == port) return reordered.end_ns;
    }
    return end_ns_[port.edge.node];
  }

  const Graph& graph_;
  const BriefGroups& groups_;
  std::vector<double> end_ns_;  // By node, in the layout that it writes; 0: nothing makes it.
  std::vector<Reordered> reordered_;
};

}  // namespace

Group WholeGroup(const BriefSetting& setting, const BriefGroups& groups, const BriefGroup& group) {
  const Graph& graph = setting.graph;
  Group whole;
  if (group.begin != group.end) {
    const std::span<const NodeId> nodes = groups.NodesOf(group);
    whole = MakeGroup(graph, groups.layouts, {nodes.begin(), nodes.end()});
  } else {
    if (!graph.is_constant(group.to.edge.node)) whole.inputs = {group.from};
    whole.outputs = {group.to};
  }
  whole.cores = setting.cores;
  if (group.kind == BriefGroup::Kind::kOperators) {
    whole.pattern = setting.spec.patterns[static_cast<size_t>(group.pattern)].name;
  } else {
    whole.pattern = group.kind == BriefGroup::Kind::kView ? kViewPattern : kReorderPattern;
  }
  return whole;
}

GroupTime WholeTime(const BriefSetting& setting, const BriefGroup& brief, const Group& group,
                    GroupTimes& times) {
  if (brief.time.state == TimeState::kEstimated) {
    return {.ns = brief.time.ns, .active_cores = brief.time.active_cores};
  }
  return times.TimeOf(brief.key,
                      [&] { return ExtractGroup(setting.graph, group, setting.policy); });
}

double MixedEstimateNs(const Graph& graph, const BriefGroups& groups, double alpha) {
  BriefEnds ends(graph, groups);
  double sum_ns = 0, critical_ns = 0;
  for (const BriefGroup& group : groups.groups) {
    sum_ns += group.time.ns;
    critical_ns = std::max(critical_ns, ends.Add(group));
  }
  return sum_ns + alpha * critical_ns;
}

}  // namespace ag
