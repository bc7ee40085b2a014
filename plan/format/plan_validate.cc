#include "plan/format/plan_validate.h"

#include <algorithm>
#include <map>

#include "plan/format/plan_checks.h"
#include "plan/fusion/group_dependencies.h"
#include "plan/segments.h"
#include "plan/spec/invalid.h"
#include "plan/spec/pattern_match.h"

namespace ag {
namespace {

Status CheckNodes(const Graph& graph, const Group& group, size_t g, std::vector<int>* owner) {
  for (size_t i = 0; i < group.nodes.size(); ++i) {
    const NodeId id = group.nodes[i];
    if (id < 0 || id >= graph.size() || graph.is_constant(id) ||
        graph.node(id).op == OpKind::kInput) {
      return InvalidPlan(fmt::format("group {}: node {} is no operator that runs", g, id));
    }
    if (i > 0 && group.nodes[i - 1] >= id) {
      return InvalidPlan(fmt::format("group {}: nodes are not ascending", g));
    }
    if ((*owner)[id] >= 0) {
      return InvalidPlan(fmt::format("node {}: in groups {} and {}", id, (*owner)[id], g));
    }
    (*owner)[id] = static_cast<int>(g);
  }
  return OkStatus();
}

Status CheckPorts(const Graph& graph, const Group& group, size_t g) {
  for (const auto* ports : {&group.inputs, &group.outputs}) {
    for (const Port& port : *ports) {
      const Edge edge = port.edge;
      const bool exists = edge.node >= 0 && edge.node < graph.size() && edge.output >= 0 &&
                          edge.output < static_cast<int>(graph.node(edge.node).outputs.size());
      if (!exists) {
        return InvalidPlan(fmt::format("group {}: no edge {}:{}", g, edge.node, edge.output));
      }
      const bool is_constant = graph.is_constant(edge.node);
      if (is_constant && !(group.nodes.empty() && group.inputs.empty())) {
        return InvalidPlan(fmt::format("group {}: {} is constant", g, PortText(port)));
      }
      if (!CanHave(graph.type(edge), port.layout)) {
        return InvalidPlan(fmt::format("group {}: {} cannot have that layout", g, PortText(port)));
      }
    }
  }
  return OkStatus();
}

std::vector<Edge> SortedEdges(const std::vector<Port>& ports) {
  std::vector<Edge> edges;
  for (const Port& port : ports) edges.push_back(port.edge);
  std::ranges::sort(edges);
  return edges;
}

// Checks that the inputs are exactly the edges that the nodes read from outside, and the outputs
// exactly those that others read.
Status CheckPortsOfNodes(const Graph& graph, const Group& group, size_t g) {
  const auto is_inside = [&](NodeId id) { return std::ranges::binary_search(group.nodes, id); };
  std::vector<Edge> reads, writes;
  for (const NodeId id : group.nodes) {
    const Node& node = graph.node(id);
    for (const Edge edge : node.inputs) {
      if (!graph.is_constant(edge.node) && !is_inside(edge.node)) reads.push_back(edge);
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const Edge edge{id, static_cast<int32_t>(i)};
      const bool is_read = std::ranges::any_of(
          graph.uses(edge), [&](const Use& use) { return !is_inside(use.node); });
      if (is_read || graph.is_output(edge)) writes.push_back(edge);
    }
  }
  std::ranges::sort(reads);
  reads.erase(std::unique(reads.begin(), reads.end()), reads.end());
  if (SortedEdges(group.inputs) != reads) {
    return InvalidPlan(fmt::format("group {}: inputs are not what its nodes read", g));
  }
  if (SortedEdges(group.outputs) != writes) {
    return InvalidPlan(fmt::format("group {}: outputs are not what others read", g));
  }
  return OkStatus();
}

// Checks that no path leaves the group and comes back; then neither part could run first.
Status CheckConvex(const Graph& graph, const Group& group, size_t g) {
  if (group.nodes.size() < 2) return OkStatus();
  const NodeId first = group.nodes.front();
  std::vector<bool> after_leaving(group.nodes.back() - first + 1);
  for (NodeId id = first + 1; id <= group.nodes.back(); ++id) {
    const bool is_inside = std::ranges::binary_search(group.nodes, id);
    for (const Edge edge : graph.node(id).inputs) {
      if (edge.node < first) continue;
      const bool left = after_leaving[edge.node - first];
      if (is_inside && left) {
        return InvalidPlan(fmt::format("group {}: node {} reads what node {} makes of the group", g,
                                       id, edge.node));
      }
      const bool leaves = !is_inside && std::ranges::binary_search(group.nodes, edge.node);
      if (leaves || left) after_leaving[id - first] = true;
    }
  }
  return OkStatus();
}

Status CheckPattern(const Graph& graph, const Group& group, size_t g, const DeviceSpec& spec) {
  if (group.pattern == kReorderPattern || (group.pattern == kViewPattern && group.nodes.empty())) {
    const bool is_copy = IsCopy(group) && group.pattern == kReorderPattern;
    const bool fits =
        group.nodes.empty() && group.outputs.size() == 1 &&
        (is_copy || (group.inputs.size() == 1 && group.inputs[0].edge == group.outputs[0].edge));
    return fits ? OkStatus() : InvalidPlan(fmt::format("group {}: not a reorder of one edge", g));
  }
  const bool is_view = group.pattern == kViewPattern;
  const GroupPattern* pattern = spec.FindPattern(group.pattern);
  if (!is_view && pattern == nullptr) {
    return InvalidPlan(
        fmt::format("group {}: device {} has no pattern '{}'", g, spec.name, group.pattern));
  }
  const auto fits = [&](size_t i) {
    if (is_view) return Has(graph.node(group.nodes[i]).op, kMovement);
    if (i > 0 || std::ranges::any_of(pattern->steps, &PatternStep::takes_movements)) {
      return HasStepFor(*pattern, graph, group.nodes[i]);
    }
    return BeginMatch(*pattern, graph, group.nodes[0]) != 0;
  };
  const size_t nodes_max = is_view ? 1 : static_cast<size_t>(NodesMax(*pattern));
  if (group.nodes.empty() || group.nodes.size() > nodes_max) {
    return InvalidPlan(fmt::format("group {}: pattern '{}' has 1 to {} operators, got {}", g,
                                   group.pattern, nodes_max, group.nodes.size()));
  }
  for (size_t i = 0; i < group.nodes.size(); ++i) {
    if (fits(i)) continue;
    return InvalidPlan(fmt::format("group {}: {} does not fit pattern '{}'", g,
                                   Info(graph.node(group.nodes[i]).op).name, group.pattern));
  }
  for (const Port& port : group.outputs) {
    const NodeId id = port.edge.node;
    if (is_view || id == group.nodes.back() || MayBeShared(*pattern, graph, id)) continue;
    return InvalidPlan(fmt::format("group {}: others read {}, which pattern '{}' does not allow", g,
                                   PortText(port), group.pattern));
  }
  return OkStatus();
}

// Returns the group that writes each port; copies write no home. A reorder must read the port of an
// operator or of the caller, so views and reorders cannot form a cycle.
StatusOr<std::map<Port, size_t>> CheckWriters(const Plan& plan) {
  std::map<Port, size_t> writers;
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    if (IsCopy(plan.groups[g])) continue;
    for (const Port& port : plan.groups[g].outputs) {
      const auto [it, is_new] = writers.emplace(port, g);
      if (!is_new) {
        return InvalidPlan(
            fmt::format("{}: written by groups {} and {}", PortText(port), it->second, g));
      }
    }
  }
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    if (!plan.groups[g].nodes.empty() || IsCopy(plan.groups[g])) continue;
    const auto it = writers.find(plan.groups[g].inputs[0]);
    if (it == writers.end() || !plan.groups[it->second].nodes.empty()) continue;
    return InvalidPlan(fmt::format("group {}: reorders what group {} reordered", g, it->second));
  }
  return writers;
}

// Checks that all segments know a tensor between them in one layout, which takes no padding.
Status CheckLayoutsBetween(const Graph& graph, const Plan& plan,
                           const std::vector<GraphPiece>& pieces) {
  std::map<Edge, Layout> layouts;
  const auto check = [&](Place::Kind kind, size_t s, size_t index, Edge edge, Edge own) -> Status {
    const Layout layout = LayoutAtEnd(plan.segments[s].plan, kind, index, own);
    const bool is_callers = graph.node(edge.node).op == OpKind::kInput || graph.is_output(edge);
    const auto [known, is_new] = layouts.emplace(edge, is_callers ? Layout::kPlain : layout);
    const TensorType stored = StoredType(pieces[s].graph.type(own), plan.policy.precision);
    const bool is_plain = HasSameBytes(stored, layout, Layout::kPlain);
    if (layout == known->second ? LayoutBytes(stored, layout) == stored.Bytes() : is_plain) {
      return OkStatus();
    }
    return InvalidPlan(fmt::format("segment {}: {}:{} in layout {}, expected {}", s, edge.node,
                                   edge.output, LayoutName(layout), LayoutName(known->second)));
  };
  for (size_t s = 0; s < pieces.size(); ++s) {
    const GraphPiece& piece = pieces[s];
    for (size_t i = 0; i < piece.inputs.size(); ++i) {
      AG_TRY(check(Place::Kind::kInput, s, i, piece.inputs[i], {piece.graph.inputs()[i], 0}));
    }
    for (size_t i = 0; i < piece.outputs.size(); ++i) {
      AG_TRY(check(Place::Kind::kOutput, s, i, piece.outputs[i], piece.graph.outputs()[i].edge));
    }
  }
  return OkStatus();
}

// Checks that the plan of a segment, of which `beside` run beside each other, has one stream and
// stays on its share of the cores.
Status CheckShare(const Plan& plan, int32_t beside, const DeviceSpec& spec) {
  if (beside < 2) return OkStatus();
  if (plan.streams.size() > 1) {
    return InvalidPlan(fmt::format("{} streams, beside other runs", plan.streams.size()));
  }
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    const Group& group = plan.groups[g];
    if (group.pattern == kViewPattern) continue;
    if (group.cores > 0 && group.cores <= spec.cores / beside) continue;
    return InvalidPlan(
        fmt::format("group {}: {} cores, its share is {}", g, group.cores, spec.cores / beside));
  }
  return OkStatus();
}

Status CheckSegments(const Graph& graph, const Plan& plan, const DeviceSpec& spec) {
  if (!plan.groups.empty() || !plan.streams.empty() || !plan.places.empty()) {
    return InvalidPlan("groups beside segments");
  }
  AG_LET(const std::vector<GraphPiece> pieces, PiecesOf(graph, plan));
  for (size_t s = 0; s < pieces.size(); ++s) {
    const Plan& own = plan.segments[s].plan;
    if (!own.segments.empty()) return InvalidPlan(fmt::format("segment {}: has segments", s));
    if (own.policy.Text() != plan.policy.Text()) {
      return InvalidPlan(fmt::format("segment {}: policy '{}', the plan has '{}'", s,
                                     own.policy.Text(), plan.policy.Text()));
    }
    AG_TRY(ValidatePlan(pieces[s].graph, own, spec), "segment {}", s);
    AG_TRY(CheckShare(own, plan.beside, spec), "segment {}", s);
  }
  const int32_t runs = plan.segments.back().instances;
  if (plan.beside < 1 || plan.beside > std::min(runs, spec.cores)) {
    return InvalidPlan(
        fmt::format("{} runs beside each other, of {} on {} cores", plan.beside, runs, spec.cores));
  }
  return CheckLayoutsBetween(graph, plan, pieces);
}

}  // namespace

std::string PortText(const Port& port) {
  return fmt::format("[{}:{} {}]", port.edge.node, port.edge.output, LayoutName(port.layout));
}

Status CheckGroups(const Graph& graph, const Plan& plan, const DeviceSpec& spec) {
  std::vector<int> owner(graph.size(), -1);
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    const Group& group = plan.groups[g];
    if (group.cores < 0 || group.cores > spec.cores) {
      return InvalidPlan(
          fmt::format("group {}: {} cores, the device has {}", g, group.cores, spec.cores));
    }
    AG_TRY(CheckNodes(graph, group, g, &owner));
    AG_TRY(CheckPorts(graph, group, g));
    AG_TRY(CheckPattern(graph, group, g, spec));
    if (!group.nodes.empty()) AG_TRY(CheckPortsOfNodes(graph, group, g));
    AG_TRY(CheckConvex(graph, group, g));
  }
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (owner[id] >= 0 || node.op == OpKind::kInput || graph.is_constant(id)) continue;
    return InvalidPlan(fmt::format("node {}: {} is in no group", id, Info(node.op).name));
  }
  return OkStatus();
}

StatusOr<HappensBefore> CheckSchedule(const Graph& graph, const Plan& plan,
                                      const DeviceSpec& spec) {
  if (plan.streams.size() > static_cast<size_t>(spec.streams_max)) {
    return InvalidPlan(
        fmt::format("{} streams, the device has {}", plan.streams.size(), spec.streams_max));
  }
  AG_LET(HappensBefore before, HappensBefore::Make(plan.groups.size(), plan.streams));
  for (const Stream& stream : plan.streams) {
    if (stream.cores < 0 || stream.cores > spec.cores) {
      return InvalidPlan(
          fmt::format("a stream of {} cores, the device has {}", stream.cores, spec.cores));
    }
    for (const Launch& launch : stream.launches) {
      for (const int wait : launch.waits) {
        if (before.StreamOf(wait) != before.StreamOf(launch.group)) continue;
        return InvalidPlan(
            fmt::format("group {}: waits for group {} on its own stream", launch.group, wait));
      }
    }
  }
  AG_LET(const auto writers, CheckWriters(plan));
  const std::vector<std::vector<int>> dependencies = GroupDependencies(graph, plan.groups);
  for (size_t i = 0; i < plan.groups.size(); ++i) {
    const int g = static_cast<int>(i);
    const bool is_view = plan.groups[i].pattern == kViewPattern;
    if (is_view == (before.StreamOf(g) >= 0)) {
      return InvalidPlan(
          fmt::format("group {}: {}", g, is_view ? "a view is launched" : "not launched"));
    }
    for (const Port& port : plan.groups[i].inputs) {
      if (writers.contains(port) || graph.node(port.edge.node).op == OpKind::kInput) continue;
      return InvalidPlan(
          fmt::format("group {}: reads {}, which no group writes", g, PortText(port)));
    }
    for (const int b : dependencies[i]) {
      if (is_view || before.IsBefore(b, g)) continue;
      return InvalidPlan(fmt::format("group {}: does not wait for group {}, which it reads", g, b));
    }
  }
  return before;
}

Status ValidatePlan(const Graph& graph, const Plan& plan, const DeviceSpec& spec) {
  if (plan.graph != graph.digest()) {
    return InvalidPlan(
        fmt::format("made for graph {}, got {}", plan.graph.Short(), graph.digest().Short()));
  }
  if (!plan.segments.empty()) return CheckSegments(graph, plan, spec);
  if (plan.beside != 1) return InvalidPlan("runs beside each other, and no segments");
  AG_TRY(CheckOffers(spec, plan.policy.precision));
  AG_TRY(CheckGroups(graph, plan, spec));
  AG_LET(const HappensBefore before, CheckSchedule(graph, plan, spec));
  return CheckPlaces(graph, plan, spec, before);
}

}  // namespace ag
