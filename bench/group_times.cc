// Where a model's time goes: each group alone, as the cache holds it, and in the whole plan.
//   build/group_times MODEL [DEVICE [OPTIONS...]]      (MODEL: of the zoo; DEVICE: cpu)
// Prints a line a group: pattern, kernel, microseconds alone and in the plan, the other kernels;
// then sums by pattern, and the whole plan's median beside the sum.
#include <algorithm>
#include <cstdio>
#include <map>

#include "bench/zoo/zoo.h"
#include "device/open_device.h"
#include "device/profile/interval.h"
#include "device/profile/measured_times.h"
#include "plan/schedule.h"
#include "rules/rewrite.h"
#include "worker/execute.h"

namespace ag {
namespace {

constexpr int kRuns = 21;

struct Row {
  double alone_ns = 0;
  std::vector<double> inside_ns;
};

Status PrintTable(const std::string& model, const std::string& device_name) {
  AG_LET(const std::unique_ptr<Device> device, OpenDevice(device_name));
  MemoryWeights weights;
  AG_LET(const Graph zoo, BuildZooModel(model, {}, &weights));
  AG_LET(const Graph graph, CleanUp(zoo, RuleSet::Shipped()));
  AG_LET(const auto alone, MeasureAlone(*device));
  MeasuredTimes times(*device, {}, RealClock());
  const Policy policy;
  AG_LET(TimedGroups timed, FormTimedGroups(graph, device->spec(), policy, times));
  for (const Layout layout : LayoutChoices(graph, device->spec())) {
    AG_LET(const TimedGroups in_layout,
           FormTimedGroups(graph, device->spec(), policy, times, {.layout = layout}));
    double sum_ns = 0;
    for (const GroupTime& time : in_layout.times) sum_ns += time.ns;
    std::printf("%s: sum alone %.3f ms\n", std::string(LayoutName(layout)).c_str(), sum_ns / 1e6);
  }
  std::vector<Stream> streams = OneStream(graph, timed.groups);
  AG_LET(const Plan plan, CompletePlan(graph, timed.groups, streams, device->spec(), policy));
  AG_LET(const std::unique_ptr<Executable> executable, device->Build(graph, plan, weights));
  const std::vector<Tensor> inputs = RandomInputs(graph, 1);
  std::vector<Tensor> outputs = EmptyOutputs(graph);
  std::vector<Row> rows(plan.groups.size());
  std::vector<double> whole;
  for (int run = -3; run < kRuns; ++run) {
    AG_LET(const Nanos took, executable->TimedRun(inputs, outputs));
    AG_LET(const std::vector<TraceEvent> trace, executable->TracedRun(inputs, outputs));
    if (run < 0) continue;
    whole.push_back(static_cast<double>(took.count()));
    for (const TraceEvent& event : trace) {
      rows[event.group].inside_ns.push_back(static_cast<double>((event.end - event.begin).count()));
    }
  }
  std::map<std::string, std::pair<double, double>> sums;
  for (size_t i = 0; i < plan.groups.size(); ++i) {
    const Group& group = plan.groups[i];
    if (rows[i].inside_ns.empty()) continue;
    const GroupProblem problem = ExtractGroup(graph, group, policy);
    const double alone_us = times.Time(problem).ns / 1e3;
    const double inside_us = Median(rows[i].inside_ns) / 1e3;
    std::string others;
    if (const Measurement* found = times.Find(problem)) {
      for (const auto& [name, ns] : found->alternatives) {
        others += fmt::format(" {}={:.0f}", name, ns / 1e3);
      }
    }
    std::string text;
    for (const NodeId id : group.nodes) {
      text += std::string(Info(graph.node(id).op).name) + " ";
    }
    if (!group.nodes.empty() && graph.node(group.nodes[0]).op == OpKind::kConv) {
      const Node& conv = graph.node(group.nodes[0]);
      for (const int64_t d : graph.type(conv.inputs[1]).shape) text += fmt::format("{}x", d);
      text += fmt::format(" s{} g{}", conv.IntList("strides")[0], conv.Int("group"));
    }
    std::string layouts;
    for (const Port& p : group.inputs) layouts += std::string(LayoutName(p.layout)) + ",";
    for (const Port& p : group.outputs) layouts += ">" + std::string(LayoutName(p.layout));
    const std::string shape =
        group.outputs.empty() ? "" : graph.type(group.outputs[0].edge).ToString();
    std::printf("%4zu %-8s %-12s %9.1f %9.1f %6.2f %s %s[%s]%s\n", i, group.pattern.c_str(),
                group.kernel.c_str(), alone_us, inside_us, inside_us / alone_us, shape.c_str(),
                text.c_str(), layouts.c_str(), others.c_str());
    auto& [a, b] = sums[group.pattern + " " + group.kernel];
    a += alone_us, b += inside_us;
  }
  double a = 0, b = 0;
  for (const auto& [name, sum] : sums) {
    std::printf("%-24s alone %9.1f inside %9.1f\n", name.c_str(), sum.first, sum.second);
    a += sum.first, b += sum.second;
  }
  std::printf("%s: sum alone %.3f ms, inside %.3f ms, whole %.3f ms\n", model.c_str(), a / 1e3,
              b / 1e3, Median(whole) / 1e6);
  return OkStatus();
}

}  // namespace
}  // namespace ag

int main(int argc, char** argv) {
  const ag::Status status =
      ag::PrintTable(argc > 1 ? argv[1] : "squeezenet", argc > 2 ? argv[2] : "cpu");
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", ag::Message(status).c_str());
  return 1;
}
