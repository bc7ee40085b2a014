#include "plan/plan.h"

#include <algorithm>

namespace ag {

std::vector<const Plan*> PlansIn(const Plan& plan) {
  if (plan.segments.empty()) return {&plan};
  std::vector<const Plan*> plans;
  for (const Segment& segment : plan.segments) plans.push_back(&segment.plan);
  return plans;
}

PlanSizes SizesOf(const Plan& plan) {
  PlanSizes sizes;
  if (!plan.segments.empty()) sizes.instances = plan.segments[0].instances;
  sizes.beside = plan.beside;
  for (const Plan* const own : PlansIn(plan)) {
    sizes.groups += static_cast<int>(own->groups.size());
    sizes.streams = std::max(sizes.streams, static_cast<int>(own->streams.size()));
    sizes.arena_bytes = std::max(sizes.arena_bytes, own->arena_bytes);
  }
  return sizes;
}

const Place* FindPlace(const Plan& plan, const Port& port) {
  const auto it = std::ranges::lower_bound(plan.places, port, {}, &Place::port);
  return it != plan.places.end() && it->port == port ? &*it : nullptr;
}

std::span<const Place> CopiesOf(const Graph& graph, const Plan& plan, const Port& port) {
  const auto begin = std::ranges::lower_bound(plan.places, port, {}, &Place::port);
  const auto end = std::ranges::upper_bound(plan.places, port, {}, &Place::port);
  const size_t homes = graph.is_constant(port.edge.node) || begin == end ? 0 : 1;
  return std::span<const Place>(begin, end).subspan(homes);
}

}  // namespace ag
