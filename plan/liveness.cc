#include "plan/liveness.h"

#include <algorithm>

namespace ag {

void LiveRange::Add(int group, bool writes, const HappensBefore& before) {
  const int position = before.PositionOf(group);
  last_access = std::max(last_access, position >= 0 ? position : std::numeric_limits<int>::max());
  if (!before.in_one_stream()) accesses.push_back(group);
  if (!writes) return;
  first_write = std::min(first_write, position);
  ++writers;
  if (before.in_one_stream()) return;
  if (writers == 1) {
    before_write = before.Before(group);
  } else {
    before_write.Intersect(before.Before(group));
  }
}

std::map<Port, LiveRange> Liveness(const Graph& graph, const Plan& plan, const ViewForest& forest,
                                   const HappensBefore& before) {
  std::map<Port, LiveRange> ranges;
  const auto touch = [&](int g, const Port& port, bool writes) {
    if (graph.is_constant(port.edge.node)) return;
    LiveRange& range = ranges[forest.Find(port).root];
    if (plan.groups[g].pattern != kViewPattern) range.Add(g, writes, before);
  };
  for (size_t i = 0; i < plan.groups.size(); ++i) {
    const int g = static_cast<int>(i);
    for (const Port& port : plan.groups[i].inputs) touch(g, port, false);
    for (const Port& port : plan.groups[i].outputs) touch(g, port, !IsCopy(plan.groups[i]));
  }
  return ranges;
}

bool EndsBefore(const LiveRange& a, const LiveRange& b) {
  if (b.writers == 0 || a.last_access >= b.first_write) return false;
  return std::ranges::all_of(a.accesses, [&](int g) { return b.before_write.Has(g); });
}

StatusOr<ViewForest> ForestOf(const Graph& graph, const Plan& plan, const DeviceSpec& spec) {
  std::vector<Group> views;
  std::vector<size_t> positions;
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    if (plan.groups[g].pattern != kViewPattern) continue;
    views.push_back(plan.groups[g]);
    positions.push_back(g);
  }
  ViewForest forest(graph, spec.alignment_bytes, plan.policy.precision);
  for (const int i : ViewOrder(graph, views)) {
    if (forest.TryAdd(views[i])) continue;
    return Err(StatusCode::kInvalidArgument, "group {}: cannot be a view", positions[i]);
  }
  return forest;
}

}  // namespace ag
