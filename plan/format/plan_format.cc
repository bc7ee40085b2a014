#include "plan/format/plan_format.h"

#include <algorithm>

#include "base/text.h"
#include "plan/segments.h"

namespace ag {
namespace {

std::string Ports(const std::vector<Port>& ports) {
  std::string text;
  for (const Port& port : ports) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", port.edge.node);
    if (port.edge.output > 0) text += fmt::format(":{}", port.edge.output);
    if (port.layout != Layout::kPlain) text += fmt::format(" {}", LayoutName(port.layout));
  }
  return text;
}

std::string Operators(const Graph& graph, const Group& group) {
  std::string text;
  for (const NodeId id : group.nodes) {
    text += fmt::format("{}{}", text.empty() ? "" : "+", Info(graph.node(id).op).name);
  }
  return text.empty() && IsCopy(group) ? "copy" : text;
}

auto ViewsOf(const Plan& plan) {
  return std::ranges::count(plan.groups, kViewPattern, &Group::pattern);
}

std::string GroupLine(const Graph& graph, const Plan& plan, int g) {
  const Group& group = plan.groups[g];
  const std::string operators = Operators(graph, group);
  std::string text = fmt::format("{}{}{} ({}) -> {}", group.pattern, operators.empty() ? "" : " ",
                                 operators, Ports(group.inputs), Ports(group.outputs));
  if (!group.kernel.empty()) text += fmt::format("  kernel {}", group.kernel);
  if (group.cores > 0) text += fmt::format("  cores {}", group.cores);
  return text;
}

// The streams and views of a plan; its first group is `first` of those that are shown.
std::string FormatGroups(const Graph& graph, const Plan& plan, int first) {
  std::string text;
  for (size_t s = 0; s < plan.streams.size(); ++s) {
    const Stream& stream = plan.streams[s];
    text += fmt::format("stream {}: cores {}\n", s,
                        stream.cores == 0 ? "all" : fmt::format("{}", stream.cores));
    for (const Launch& launch : stream.launches) {
      text += fmt::format("  {}: {}", first + launch.group, GroupLine(graph, plan, launch.group));
      std::vector<int> waits = launch.waits;
      for (int& wait : waits) wait += first;
      if (!waits.empty()) text += fmt::format("  waits {}", Join(waits, ","));
      text += "\n";
    }
  }
  if (ViewsOf(plan) > 0) text += "views\n";
  for (int g = 0; g < static_cast<int>(plan.groups.size()); ++g) {
    if (plan.groups[g].pattern != kViewPattern) continue;
    text += fmt::format("  {}: {}\n", first + g, GroupLine(graph, plan, g));
  }
  return text;
}

std::string Counts(const Plan& plan) {
  return fmt::format("{} groups ({} views), {} streams, arena {} bytes\n", plan.groups.size(),
                     ViewsOf(plan), plan.streams.size(), plan.arena_bytes);
}

std::string BesideText(const Plan& plan) {
  return plan.beside == 1 ? "" : fmt::format(", {} beside each other", plan.beside);
}

}  // namespace

std::string FormatPlan(const Graph& graph, const Plan& plan) {
  const std::string head = fmt::format("plan of graph {}: ", plan.graph.Short());
  if (plan.segments.empty()) return head + Counts(plan) + FormatGroups(graph, plan, 0);
  const StatusOr<std::vector<GraphPiece>> pieces = PiecesOf(graph, plan);
  if (!pieces.ok()) return head + Message(pieces.status()) + "\n";
  if (plan.segments.size() == 1) {
    const Segment& only = plan.segments[0];
    return head + Counts(only.plan) +
           fmt::format("instances {}: each on an equal part of the batch{}\n", only.instances,
                       BesideText(plan)) +
           FormatGroups((*pieces)[0].graph, only.plan, 0);
  }
  std::string text = fmt::format("{}{} segments{}\n", head, plan.segments.size(), BesideText(plan));
  int first = 0;
  for (size_t s = 0; s < pieces->size(); ++s) {
    const Segment& segment = plan.segments[s];
    const auto& [nodes, instances, own] = segment;
    text += fmt::format("segment {}: nodes {} to {}, instances {}, {}", s, nodes.front(),
                        nodes.back(), instances, Counts(own));
    text += FormatGroups((*pieces)[s].graph, own, first);
    first += static_cast<int>(own.groups.size());
  }
  return text;
}

}  // namespace ag
