#include <algorithm>
#include <set>

#include "plan/format/plan_checks.h"
#include "plan/liveness.h"
#include "plan/spec/invalid.h"

namespace ag {
namespace {

int64_t BytesOf(const Graph& graph, const Plan& plan, const Port& port) {
  return LayoutBytes(StoredType(graph.type(port.edge), plan.policy.precision), port.layout);
}

// Returns the size of the buffer that holds a place.
StatusOr<int64_t> BufferBytes(const Graph& graph, const Plan& plan, const Place& place) {
  if (place.kind == Place::Kind::kArena) return plan.arena_bytes;
  const bool is_input = place.kind == Place::Kind::kInput;
  const size_t count = is_input ? graph.inputs().size() : graph.outputs().size();
  if (place.index < 0 || static_cast<size_t>(place.index) >= count) {
    return InvalidPlan(fmt::format("{}: {} {} of {}", PortText(place.port),
                                   is_input ? "input" : "output", place.index, count));
  }
  const Edge edge =
      is_input ? Edge{graph.inputs()[place.index], 0} : graph.outputs()[place.index].edge;
  // A tensor in another layout has its own buffer there.
  const bool is_own = place.port.edge == edge && place.offset_bytes == 0;
  const TensorType type = StoredType(graph.type(edge), plan.policy.precision);
  return LayoutBytes(type, is_own ? place.port.layout : Layout::kPlain);
}

// Checks that exactly the ports are placed, and that all places are within their buffers.
Status CheckBounds(const Graph& graph, const Plan& plan, const DeviceSpec& spec) {
  std::set<Port> ports;
  for (const Group& group : plan.groups) {
    ports.insert(group.inputs.begin(), group.inputs.end());
    ports.insert(group.outputs.begin(), group.outputs.end());
  }
  for (size_t i = 0; i < plan.places.size(); ++i) {
    const Place& place = plan.places[i];
    if (i > 0 && !(plan.places[i - 1] < place)) return InvalidPlan("places are not sorted");
    if (!ports.contains(place.port)) {
      return InvalidPlan(fmt::format("{}: placed, but no group uses it", PortText(place.port)));
    }
    AG_LET(const int64_t buffer, BufferBytes(graph, plan, place));
    const int64_t bytes = BytesOf(graph, plan, place.port);
    if (place.offset_bytes < 0 || place.offset_bytes % spec.alignment_bytes != 0 ||
        bytes > buffer || place.offset_bytes > buffer - bytes) {
      return InvalidPlan(fmt::format("{}: {} bytes at {} do not fit a buffer of {}",
                                     PortText(place.port), bytes, place.offset_bytes, buffer));
    }
  }
  for (const Port& port : ports) {
    if (FindPlace(plan, port) == nullptr) {
      return InvalidPlan(fmt::format("{}: has no place", PortText(port)));
    }
  }
  return OkStatus();
}

// Checks that a port inside another one has the offset of its view, and that a root is in its own
// buffer.
Status CheckHome(const Graph& graph, const Plan& plan, const ViewForest& forest,
                 const Place& place) {
  const ViewForest::Location location = forest.Find(place.port);
  if (location.root != place.port) {
    const Place* root = FindPlace(plan, location.root);
    const bool is_inside = root != nullptr && root->kind == place.kind &&
                           root->index == place.index &&
                           root->offset_bytes + location.offset_bytes == place.offset_bytes;
    if (is_inside) return OkStatus();
    return InvalidPlan(fmt::format("{}: does not lie inside {} where its view says",
                                   PortText(place.port), PortText(location.root)));
  }
  if (place.kind == Place::Kind::kArena) return OkStatus();
  const Edge edge = place.kind == Place::Kind::kInput ? Edge{graph.inputs()[place.index], 0}
                                                      : graph.outputs()[place.index].edge;
  if (place.port.edge == edge && place.offset_bytes == 0) return OkStatus();
  return InvalidPlan(fmt::format("{}: lies in the buffer of another tensor", PortText(place.port)));
}

// Checks that each graph output is written once: as the home of its tensor, or by a copy.
Status CheckOutputs(const Graph& graph, const Plan& plan, const ViewForest& forest) {
  std::vector<int> writers(graph.outputs().size());
  for (const Place& place : plan.places) {
    const bool is_root = forest.Find(place.port).root == place.port;
    if (place.kind == Place::Kind::kOutput && is_root) ++writers[place.index];
  }
  for (size_t i = 0; i < writers.size(); ++i) {
    if (writers[i] == 1) continue;
    return InvalidPlan(fmt::format("output {}: has {} places, expected one", i, writers[i]));
  }
  std::set<Port> copied;
  for (const Group& group : plan.groups) {
    if (!IsCopy(group)) continue;
    const Port& port = group.outputs[0];
    if (!copied.insert(port).second || CopiesOf(graph, plan, port).empty()) {
      return InvalidPlan(fmt::format("{}: a copy without a place to fill", PortText(port)));
    }
  }
  for (size_t i = 0; i < plan.places.size(); ++i) {
    const Place& place = plan.places[i];
    const bool is_constant = graph.is_constant(place.port.edge.node);
    const bool is_home = !is_constant && FindPlace(plan, place.port) == &place;
    if (is_home) continue;
    const bool is_own = place.kind == Place::Kind::kOutput &&
                        graph.outputs()[place.index].edge == place.port.edge &&
                        place.offset_bytes == 0;
    if (!is_own || !copied.contains(place.port)) {
      return InvalidPlan(fmt::format("{}: no copy fills its further place", PortText(place.port)));
    }
  }
  return OkStatus();
}

// Checks that launches write no graph input, that every tensor that is read is an input or is
// written, and that no bytes are needed by two tensors at once.
Status CheckLives(const Graph& graph, const Plan& plan, const ViewForest& forest,
                  const HappensBefore& before) {
  struct Used {
    const Place* place;
    const LiveRange* range;
    int64_t end;
  };
  std::vector<Used> arena;
  const std::map<Port, LiveRange> ranges = Liveness(graph, plan, forest, before);
  for (const auto& [root, range] : ranges) {
    const Place* place = FindPlace(plan, root);
    if (place == nullptr) return InvalidPlan(fmt::format("{}: has no place", PortText(root)));
    const bool is_input = place->kind == Place::Kind::kInput;
    if (is_input != (range.writers == 0)) {
      return InvalidPlan(fmt::format("{}: {}", PortText(root),
                                     is_input ? "a graph input is written" : "is never written"));
    }
    if (place->kind != Place::Kind::kArena) continue;
    const int64_t bytes = BytesOf(graph, plan, root);
    if (bytes > 0) arena.push_back({place, &range, place->offset_bytes + bytes});
  }
  std::ranges::sort(arena, {}, [](const Used& used) {
    return std::pair(used.place->offset_bytes, used.place->port);
  });
  for (size_t i = 0; i < arena.size(); ++i) {
    for (size_t k = i + 1; k < arena.size(); ++k) {
      if (arena[k].place->offset_bytes >= arena[i].end) break;
      if (EndsBefore(*arena[i].range, *arena[k].range)) continue;
      if (EndsBefore(*arena[k].range, *arena[i].range)) continue;
      return InvalidPlan(fmt::format("{} and {} share bytes while both are alive",
                                     PortText(arena[i].place->port),
                                     PortText(arena[k].place->port)));
    }
  }
  return OkStatus();
}

}  // namespace

Status CheckPlaces(const Graph& graph, const Plan& plan, const DeviceSpec& spec,
                   const HappensBefore& before) {
  if (plan.arena_bytes < 0) return InvalidPlan(fmt::format("arena of {} bytes", plan.arena_bytes));
  AG_TRY(CheckBounds(graph, plan, spec));
  StatusOr<ViewForest> forest = ForestOf(graph, plan, spec);
  AG_TRY(forest, "plan");
  for (const Place& place : plan.places) {
    const bool is_constant = graph.is_constant(place.port.edge.node);
    if (is_constant || FindPlace(plan, place.port) != &place) continue;
    AG_TRY(CheckHome(graph, plan, *forest, place));
  }
  AG_TRY(CheckOutputs(graph, plan, *forest));
  return CheckLives(graph, plan, *forest, before);
}

}  // namespace ag
