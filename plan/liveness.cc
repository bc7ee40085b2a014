#include "plan/liveness.h"

namespace ag {

std::map<Port, LiveRange> Liveness(const Graph& graph, const Plan& plan, const ViewForest& forest,
                                   const HappensBefore& before) {
  const size_t groups = plan.groups.size();
  std::map<Port, LiveRange> ranges;
  const auto touch = [&](int g, const Port& port, bool writes) {
    if (graph.is_constant(port.edge.node)) return;
    const auto [it, is_new] = ranges.try_emplace(forest.Find(port).root);
    LiveRange& range = it->second;
    if (is_new) {
      range.accesses = GroupSet(groups);
      range.before_write = GroupSet(groups);
      range.before_write.Fill();
    }
    if (plan.groups[g].pattern == kViewPattern) return;
    range.accesses.Add(g);
    if (!writes) return;
    range.before_write.Intersect(before.Before(g));
    ++range.writers;
  };
  for (size_t i = 0; i < groups; ++i) {
    const int g = static_cast<int>(i);
    for (const Port& port : plan.groups[i].inputs) touch(g, port, false);
    for (const Port& port : plan.groups[i].outputs) touch(g, port, !IsCopy(plan.groups[i]));
  }
  return ranges;
}

bool EndsBefore(const LiveRange& a, const LiveRange& b) {
  return b.writers > 0 && a.accesses.IsWithin(b.before_write);
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
