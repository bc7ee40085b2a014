// The times of a model's groups: each group measured alone, as for the cache, and in the whole
// plan.
//   build/group_times [--precision P] [MODEL [DEVICE [LAYOUT]]]
// (fp32; squeezenet, cpu; MODEL: of the zoo, or FILE.onnx; LAYOUT: of contractions, else the
// cheapest)
// Prints a line for each group: pattern, kernel, microseconds alone and in the plan, the other
// kernels; then sums by pattern, the error of the times alone, and the whole plan's median beside
// the sum. Error: the mean of |ln(inside / alone)|, weighted by the time inside.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "base/command_line.h"
#include "bench/models/load_model.h"
#include "device/open_device.h"
#include "device/profile/profile.h"
#include "graph/inputs/make_inputs.h"
#include "plan/fusion/grouping.h"
#include "plan/interval.h"
#include "plan/schedule/planner.h"
#include "rules/match/rule_clean_up.h"
#include "rules/sets/built_in_rules.h"
#include "worker/execute.h"

namespace ag {
namespace {

constexpr int kRuns = 21;

struct Options {
  std::string model = "squeezenet";
  std::string device = "cpu";
  std::string layout;
  Policy policy;
};

using Samples = std::vector<std::vector<double>>;  // By group, in nanoseconds.

double SumNs(const TimedGroups& timed) {
  double sum = 0;
  for (const GroupTime& time : timed.times) sum += time.ns;
  return sum;
}

// Returns the operators, and a convolution's geometry.
std::string Describe(const Graph& graph, const Group& group) {
  std::string text;
  for (const NodeId id : group.nodes) text += std::string(Info(graph.node(id).op).name) + " ";
  if (!group.nodes.empty() && graph.node(group.nodes[0]).op == OpKind::kConv) {
    const Node& conv = graph.node(group.nodes[0]);
    for (const int64_t d : graph.type(conv.inputs[1]).shape) text += fmt::format("{}x", d);
    text += fmt::format(" s{} g{} ", conv.IntList("strides")[0], conv.Int("group"));
  }
  for (const Port& p : group.inputs) text += std::string(LayoutName(p.layout)) + " ";
  for (const Port& p : group.outputs) text += "> " + std::string(LayoutName(p.layout));
  return text;
}

std::string Others(const std::optional<Measurement>& found) {
  std::string others;
  if (!found) return others;
  if (found->active_cores > 0) others += fmt::format(" active_cores={}", found->active_cores);
  for (const auto& [name, ns] : found->alternatives) {
    others += fmt::format(" {}={:.0f}", name, ns / 1e3);
  }
  return others;
}

// Prints the sum of the groups' times for each layout.
Status PrintLayouts(const Graph& graph, const Device& device, const Policy& policy,
                    GroupTimes& times) {
  for (const Layout layout : LayoutChoices(graph, device.spec())) {
    AG_LET(const TimedGroups timed,
           FormTimedGroups(graph, device.spec(), policy, times, {.layout = layout}));
    std::printf("%s: sum alone %.3f ms\n", std::string(LayoutName(layout)).c_str(),
                SumNs(timed) / 1e6);
  }
  return OkStatus();
}

// Adds to inside[group]; returns the whole plan's times.
StatusOr<std::vector<double>> TimeInside(const Graph& graph, Executable& executable,
                                         Samples* inside) {
  const std::vector<Tensor> inputs = UsualInputs(graph, 1);
  std::vector<Tensor> outputs = EmptyOutputs(graph);
  std::vector<double> whole;
  for (int run = -3; run < kRuns; ++run) {
    AG_LET(const double took_ns, executable.Time({inputs, outputs}));
    std::vector<TraceEvent> trace;
    AG_TRY(executable.Time({inputs, outputs, 1, Caches::kAsLeft, &trace}));
    if (run < 0) continue;
    whole.push_back(took_ns);
    for (const TraceEvent& event : trace) {
      (*inside)[event.group].push_back(static_cast<double>((event.end - event.begin).count()));
    }
  }
  return whole;
}

void PrintRows(const Graph& graph, const Plan& plan, const Samples& inside_ns,
               LearnedTimes& times) {
  std::map<std::string, std::pair<double, double>> sums;  // Microseconds alone and inside.
  double all_us = 0, error_us = 0;
  for (size_t i = 0; i < plan.groups.size(); ++i) {
    const Group& group = plan.groups[i];
    if (inside_ns[i].empty()) continue;
    const GroupProblem problem = ExtractGroup(graph, group, plan.policy);
    const double alone_us = times.Time(problem).ns / 1e3;
    const double inside_us = Median(inside_ns[i]) / 1e3;
    std::printf("%4zu %-8s %-12s %9.1f %9.1f %6.2f  %s %s\n", i, group.pattern.c_str(),
                group.kernel.c_str(), alone_us, inside_us, inside_us / alone_us,
                Describe(graph, group).c_str(), Others(times.MeasurementOf(problem)).c_str());
    auto& [alone, inside] = sums[group.pattern + " " + group.kernel];
    alone += alone_us, inside += inside_us;
    all_us += inside_us, error_us += inside_us * std::abs(std::log(inside_us / alone_us));
  }
  for (const auto& [name, sum] : sums) {
    std::printf("%-24s alone %9.1f inside %9.1f\n", name.c_str(), sum.first, sum.second);
  }
  std::printf("error %.2f\n", error_us / all_us);
}

Status PrintTable(const Options& options) {
  std::optional<Layout> layout;
  if (!options.layout.empty()) {
    AG_LET(layout, ParseLayout(options.layout));
  }
  AG_LET(const std::unique_ptr<Device> device, OpenDevice(options.device));
  AG_LET(const LoadedModel loaded, LoadModel(options.model));
  AG_LET(const Graph graph, CleanUp(loaded.graph, BuiltInRules()));
  AG_LET(const auto lock, MeasureAlone(*device));
  LearnedTimes times(device->spec(), MeasureOn(*device, {}, RealClock()), {.at_once = true});
  AG_LET(TimedGroups timed, FormTimedGroups(graph, device->spec(), options.policy, times,
                                            {.layout = layout, .mixed_layouts = true}));
  AG_TRY(PrintLayouts(graph, *device, options.policy, times));
  const double sum_ns = SumNs(timed);
  std::vector<Stream> streams = OneStream(graph, timed.groups);
  AG_LET(const Plan plan, CompletePlan(graph, std::move(timed.groups), std::move(streams),
                                       device->spec(), options.policy));
  AG_LET(const std::unique_ptr<Executable> executable,
         device->Build({graph, plan, *loaded.weights}));
  Samples inside(plan.groups.size());
  AG_LET(const std::vector<double> whole, TimeInside(graph, *executable, &inside));
  PrintRows(graph, plan, inside, times);
  std::printf("%s: sum alone %.3f ms, whole %.3f ms\n", options.model.c_str(), sum_ns / 1e6,
              Median(whole) / 1e6);
  return OkStatus();
}

}  // namespace
}  // namespace ag

int main(int argc, char** argv) {
  ag::Options options;
  CLI::App app("The times of a model's groups, alone and in the plan", "group_times");
  ag::ShowDefaults(app);
  app.add_option("--precision", options.policy.precision, "Precision");
  app.add_option("MODEL", options.model, "A model of the zoo, or an ONNX file");
  app.add_option("DEVICE", options.device, "Device");
  app.add_option("LAYOUT", options.layout, "Layout of contractions; none: the cheapest");
  if (const int code = ag::ParseCommandLine(app, argc, argv); code >= 0) return code;
  if (const ag::Status status = ag::PrintTable(options); !status.ok()) {
    std::fprintf(stderr, "%s\n", ag::Message(status).c_str());
    return 1;
  }
}
