#include "plan/format/plan_format.h"

#include <algorithm>

#include "base/text.h"

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

std::string GroupLine(const Graph& graph, const Plan& plan, int g) {
  const Group& group = plan.groups[g];
  const std::string operators = Operators(graph, group);
  std::string text = fmt::format("{}{}{} ({}) -> {}", group.pattern, operators.empty() ? "" : " ",
                                 operators, Ports(group.inputs), Ports(group.outputs));
  if (!group.kernel.empty()) text += fmt::format("  kernel {}", group.kernel);
  if (group.cores > 0) text += fmt::format("  cores {}", group.cores);
  return text;
}

}  // namespace

std::string FormatPlan(const Graph& graph, const Plan& plan) {
  const auto views = std::ranges::count(plan.groups, kViewPattern, &Group::pattern);
  std::string text = fmt::format(
      "plan of graph {}: {} groups ({} views), {} streams, arena {} bytes\n", plan.graph.Short(),
      plan.groups.size(), views, plan.streams.size(), plan.arena_bytes);
  if (plan.instances > 1) {
    text += fmt::format("instances {}: each on an equal part of the batch\n", plan.instances);
  }
  for (size_t s = 0; s < plan.streams.size(); ++s) {
    const Stream& stream = plan.streams[s];
    text += fmt::format("stream {}: cores {}\n", s,
                        stream.cores == 0 ? "all" : fmt::format("{}", stream.cores));
    for (const Launch& launch : stream.launches) {
      text += fmt::format("  {}: {}", launch.group, GroupLine(graph, plan, launch.group));
      if (!launch.waits.empty()) text += fmt::format("  waits {}", Join(launch.waits, ","));
      text += "\n";
    }
  }
  if (views > 0) text += "views\n";
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    if (plan.groups[g].pattern != kViewPattern) continue;
    text += fmt::format("  {}: {}\n", g, GroupLine(graph, plan, static_cast<int>(g)));
  }
  return text;
}

}  // namespace ag
