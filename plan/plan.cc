#include "plan/plan.h"

#include <algorithm>

namespace ag {

Plan InstanceOf(Plan plan, const Graph& part) {
  plan.instances = 1;
  plan.graph = part.digest();
  return plan;
}

Plan InstancesOf(Plan instance, const Graph& whole, int32_t instances) {
  instance.instances = instances;
  instance.graph = whole.digest();
  return instance;
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
