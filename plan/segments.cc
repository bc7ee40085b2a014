#include "plan/segments.h"

#include <algorithm>
#include <map>

#include "graph/batch/part_of_batch.h"
#include "graph/batch/samples.h"
#include "graph/operators_of.h"
#include "plan/spec/invalid.h"

namespace ag {
namespace {

// Returns the segment of each node; -1: an input or a constant.
StatusOr<std::vector<int>> OwnersOf(const Graph& graph, const std::vector<Segment>& segments) {
  std::vector<int> owners(graph.size(), -1);
  const std::vector<NodeId> operators = OperatorsOf(graph);
  for (size_t s = 0; s < segments.size(); ++s) {
    const std::vector<NodeId>& nodes = segments[s].nodes;
    if (nodes.empty()) return InvalidPlan(fmt::format("segment {}: no nodes", s));
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (i > 0 && nodes[i - 1] >= nodes[i]) {
        return InvalidPlan(fmt::format("segment {}: nodes are not ascending", s));
      }
      if (!std::ranges::binary_search(operators, nodes[i])) {
        return InvalidPlan(
            fmt::format("segment {}: node {} is no operator that runs", s, nodes[i]));
      }
      int& owner = owners[nodes[i]];
      if (owner >= 0) {
        return InvalidPlan(fmt::format("node {}: in segments {} and {}", nodes[i], owner, s));
      }
      owner = static_cast<int>(s);
    }
  }
  for (const NodeId id : operators) {
    if (owners[id] < 0) return InvalidPlan(fmt::format("node {}: in no segment", id));
    for (const Edge edge : graph.node(id).inputs) {
      if (owners[edge.node] <= owners[id]) continue;
      return InvalidPlan(fmt::format("segment {}: reads node {} of segment {}", owners[id],
                                     edge.node, owners[edge.node]));
    }
  }
  return owners;
}

Status CheckCounts(const std::vector<Segment>& segments) {
  for (size_t s = 0; s < segments.size(); ++s) {
    const int32_t count = segments[s].instances;
    if (count < 1) return InvalidPlan(fmt::format("{} instances: expected at least 1", count));
    if (s == 0 || segments[s - 1].instances % count == 0) continue;
    return InvalidPlan(fmt::format("segment {}: {} instances are no multiple of the next one's {}",
                                   s - 1, segments[s - 1].instances, count));
  }
  return OkStatus();
}

// Parts of a tensor lie one behind the other only along its first axis.
Status CheckAxes(const Graph& graph, const std::vector<Between>& tensors) {
  AG_LET(const Samples samples, FindSamples(graph));
  for (const Between& tensor : tensors) {
    if (samples.batch < 2 || samples.axis_of[tensor.edge.node] == 0) continue;
    return Err(StatusCode::kUnimplemented,
               "plan: {}:{} between segments: its samples are not its first axis", tensor.edge.node,
               tensor.edge.output);
  }
  return OkStatus();
}

}  // namespace

StatusOr<std::vector<GraphPiece>> PiecesOf(const Graph& graph, const Plan& plan) {
  AG_TRY(CheckCounts(plan.segments));
  AG_LET(const std::vector<int> owners, OwnersOf(graph, plan.segments));
  for (const GraphOutput& output : graph.outputs()) {
    if (plan.segments.size() == 1 || owners[output.edge.node] >= 0) continue;
    return InvalidPlan(fmt::format("output {}: no segment computes it", output.name));
  }
  std::map<int32_t, Graph> parts;
  std::vector<GraphPiece> pieces;
  for (const Segment& segment : plan.segments) {
    auto part = parts.find(segment.instances);
    if (part == parts.end()) {
      StatusOr<Graph> made = PartOfBatch(graph, segment.instances);
      AG_TRY(made.status(), "plan: {} instances", segment.instances);
      part = parts.emplace(segment.instances, *std::move(made)).first;
    }
    pieces.push_back(PieceOf(part->second, segment.nodes));
  }
  if (plan.segments.size() > 1) AG_TRY(CheckAxes(graph, TensorsBetween(graph, pieces)));
  return pieces;
}

std::vector<Graph> GraphsIn(const Graph& graph, const Plan& plan) {
  if (plan.segments.empty()) return {graph};
  std::vector<Graph> graphs;
  StatusOr<std::vector<GraphPiece>> pieces = PiecesOf(graph, plan);
  if (!pieces.ok()) return graphs;
  for (GraphPiece& piece : *pieces) graphs.push_back(std::move(piece.graph));
  return graphs;
}

Plan InstancesOf(Plan instance, const Graph& whole, int32_t instances, int32_t beside) {
  std::vector<Segment> segments;
  segments.push_back({OperatorsOf(whole), instances, std::move(instance)});
  Plan plan = PlanOfSegments(std::move(segments), whole);
  plan.beside = beside;
  return plan;
}

Plan PlanOfSegments(std::vector<Segment> segments, const Graph& whole) {
  Plan plan{.graph = whole.digest(),
            .environment = segments[0].plan.environment,
            .policy = segments[0].plan.policy};
  for (Segment& segment : segments) segment.plan.environment.clear();
  plan.segments = std::move(segments);
  return plan;
}

Layout LayoutAtEnd(const Plan& plan, Place::Kind kind, size_t index, Edge edge) {
  std::optional<Layout> layout;
  for (const Place& place : plan.places) {  // Plain comes first, where it is there.
    const bool is_it = place.kind == kind && place.index == static_cast<int32_t>(index) &&
                       place.port.edge == edge && place.offset_bytes == 0;
    if (is_it && !layout) layout = place.port.layout;
  }
  return layout.value_or(Layout::kPlain);
}

std::vector<Between> TensorsBetween(const Graph& graph, const std::vector<GraphPiece>& pieces) {
  std::vector<Between> tensors;
  for (size_t s = 0; s < pieces.size(); ++s) {
    for (const Edge edge : pieces[s].outputs) {
      if (!graph.is_output(edge)) tensors.push_back({edge, s, s});
    }
    for (const Edge edge : pieces[s].inputs) {
      const auto it = std::ranges::find(tensors, edge, &Between::edge);
      if (it != tensors.end()) it->last_reader = s;
    }
  }
  return tensors;
}

}  // namespace ag
