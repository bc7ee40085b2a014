// What the simulated H200 answers, beside what is known of the device.
//   build/simulated_times [--spec FILE] [--figures FILE] [--recording FILE] [--check]
// (deploy/devices/h200.spec, bench/simulated_times.txt, bench/results/2026-11-26-h200.recording)
// For each model and precision of the figures: the simulated time of the input's plan as it is, on
// one stream and on the better of one and up to eight; then of the plan that the figures are for,
// in which siblings among products are merged and small kernels fused, with its kernels and longest
// chain, the figure, and simulated over figure. For each pattern of the recording: the estimates of
// its groups over their measured times. --check: a ratio of a model, or the recording's median,
// that is not within 1.3 ends with 1.
#include <algorithm>
#include <cstdio>
#include <map>
#include <sstream>

#include "base/command_line.h"
#include "base/file.h"
#include "base/text.h"
#include "plan/format/recording.h"
#include "plan/fusion/group_dependencies.h"
#include "plan/schedule/makespan.h"
#include "plan/schedule/planner.h"
#include "plan/schedule/schedulers.h"
#include "rules/match/rule_clean_up.h"
#include "rules/sets/built_in_rules.h"
#include "zoo/zoo.h"

namespace ag {
namespace {

constexpr double kRatioMax = 1.3;
constexpr int kStreams = 8;

struct Options {
  std::string spec = "deploy/devices/h200.spec";
  std::string figures = "bench/simulated_times.txt";
  std::string recording = "bench/results/2026-11-26-h200.recording";
  bool check = false;
};

// One line of the file of figures.
struct Figure {
  std::string model, precision;
  int kernels = 0, chain = 0;
  double one_us = 0, eight_us = 0;
};

StatusOr<std::vector<Figure>> ReadFigures(const std::string& path) {
  AG_LET(const std::string text, ReadFile(path));
  std::vector<Figure> figures;
  for (const std::string_view line : Split(text, '\n')) {
    if (Trim(line).empty() || line.starts_with('#')) continue;
    std::istringstream in{std::string(line)};
    Figure f;
    in >> f.model >> f.precision >> f.kernels >> f.chain >> f.one_us >> f.eight_us;
    if (!in) return Err(StatusCode::kInvalidArgument, "{}: {}", path, line);
    figures.push_back(std::move(f));
  }
  return figures;
}

// Returns the graph with products of one operand merged: the three of BERT's attention, those of a
// step of SRU.
StatusOr<Graph> MergeSiblings(const Graph& graph) {
  std::string text;
  for (const char* name : {"matmul-merge-siblings", "matmul-add-merge-siblings"}) {
    const Rule* const built_in = BuiltInRules().Find(name);
    AG_CHECK(built_in != nullptr);
    std::string rule = built_in->text;
    constexpr std::string_view kSearched = "[exact]";
    const size_t at = rule.find(kSearched);
    AG_CHECK(at != rule.npos);
    text += rule.replace(at, kSearched.size(), "[exact, clean-up]") + "\n";
  }
  AG_LET(const RuleSet rules, RuleSet::Parse(text, "siblings"));
  return CleanUp(graph, rules);
}

// Whether the group only moves elements or computes them one by one.
bool IsSmall(const Graph& graph, const Group& group) {
  return std::ranges::all_of(group.nodes, [&](NodeId id) {
    const OpKind op = graph.node(id).op;
    return Has(op, kElementwise) || Has(op, kMovement);
  });
}

// Returns one group that does the work of two; `b` reads `a`.
Group Join(const Graph& graph, const Group& a, const Group& b) {
  Group both = b;
  both.nodes.insert(both.nodes.end(), a.nodes.begin(), a.nodes.end());
  std::ranges::sort(both.nodes);
  const auto is_own = [&](NodeId id) { return std::ranges::binary_search(both.nodes, id); };
  both.inputs.insert(both.inputs.begin(), a.inputs.begin(), a.inputs.end());
  std::ranges::sort(both.inputs);
  both.inputs.erase(std::unique(both.inputs.begin(), both.inputs.end()), both.inputs.end());
  std::erase_if(both.inputs, [&](const Port& port) { return is_own(port.edge.node); });
  both.outputs.insert(both.outputs.end(), a.outputs.begin(), a.outputs.end());
  std::erase_if(both.outputs, [&](const Port& port) {
    const auto uses = graph.uses(port.edge);
    return !graph.is_output(port.edge) &&
           std::ranges::all_of(uses, [&](const Use& use) { return is_own(use.node); });
  });
  return both;
}

// Returns the groups after ideal fusion. A small group costs nothing (a view) where kernels that
// are not small read it, through others or not: they take it along. Another one joins the group
// that reads it, where that is one.
std::vector<Group> FuseSmall(const Graph& graph, std::vector<Group> groups) {
  const auto before = GroupDependencies(graph, groups);
  std::vector<std::vector<int>> readers(groups.size());
  for (size_t g = 0; g < groups.size(); ++g) {
    for (const int b : before[g]) readers[b].push_back(static_cast<int>(g));
  }
  std::vector<int> home(groups.size());
  std::vector<bool> is_taken(groups.size()), is_joined(groups.size());
  for (int g = static_cast<int>(groups.size()) - 1; g >= 0; --g) {
    home[g] = g;
    if (groups[g].pattern == kViewPattern || !IsSmall(graph, groups[g])) continue;
    bool is_read = false, has_one_home = !readers[g].empty();
    for (const int r : readers[g]) {
      is_read = is_read || is_taken[r] || !IsSmall(graph, groups[r]);
      has_one_home = has_one_home && home[r] == home[readers[g][0]];
    }
    is_taken[g] = is_read;
    is_joined[g] = !is_read && has_one_home;
    if (!is_joined[g]) continue;
    home[g] = home[readers[g][0]];
    groups[home[g]] = Join(graph, groups[g], groups[home[g]]);
  }
  std::vector<Group> fused;
  for (size_t g = 0; g < groups.size(); ++g) {
    if (is_taken[g]) groups[g].pattern = kViewPattern;
    if (!is_joined[g]) fused.push_back(std::move(groups[g]));
  }
  return fused;
}

// What the simulation says of groups.
struct Answer {
  int kernels = 0, chain = 0;
  double one_us = 0, eight_us = 0;
};

Answer AnswerOf(const Graph& graph, const std::vector<Group>& groups, const DeviceSpec& spec,
                const Policy& policy) {
  RooflineTimes times(spec);
  std::vector<GroupTime> all;
  std::vector<double> ones;
  for (const Group& group : groups) {
    const bool is_view = group.pattern == kViewPattern;
    all.push_back(is_view ? GroupTime() : times.Time(ExtractGroup(graph, group, policy)));
    ones.push_back(is_view ? 0 : 1);
  }
  const auto problem_on = [&](int streams) {
    return MakeScheduleProblem(graph, groups, NsOf(all), spec, policy, streams,
                               ContentionOf(all, /*overlap=*/1));
  };
  Answer answer;
  answer.kernels = static_cast<int>(std::ranges::count(ones, 1));
  answer.chain = static_cast<int>(CriticalPathNs(graph, groups, ones));
  const double one_ns = MakespanNs(problem_on(1), OneStream(graph, groups));
  const std::vector<SimulatedSchedule> several = SchedulesOf(problem_on(kStreams));
  answer.one_us = one_ns / 1e3;
  answer.eight_us = (several.empty() ? one_ns : std::min(one_ns, several[0].makespan_ns)) / 1e3;
  return answer;
}

StatusOr<std::vector<Group>> GroupsOf(const Graph& graph, const DeviceSpec& spec,
                                      const Policy& policy) {
  RooflineTimes times(spec);
  AG_LET(TimedPlan made, MakeTimedPlan({graph, spec, policy, {.mixed_layouts = true}}, times));
  return std::move(made.plan.groups);
}

bool IsNear(double ratio) { return ratio < kRatioMax && ratio > 1 / kRatioMax; }

// Prints the line of a figure; returns what is not near it.
StatusOr<std::string> Compare(const Figure& figure, const DeviceSpec& spec) {
  MemoryWeights weights;
  AG_LET(const Graph zoo, BuildZooModel(figure.model, {}, &weights));
  AG_LET(const Graph graph, CleanUp(zoo, BuiltInRules()));
  AG_LET(const Graph merged, MergeSiblings(graph));
  Policy policy;
  policy.precision = figure.precision;
  AG_LET(std::vector<Group> groups, GroupsOf(graph, spec, policy));
  const Answer plain = AnswerOf(graph, groups, spec, policy);
  AG_LET(groups, GroupsOf(merged, spec, policy));
  const Answer fused = AnswerOf(merged, FuseSmall(merged, std::move(groups)), spec, policy);
  const double one = fused.one_us / figure.one_us, eight = fused.eight_us / figure.eight_us;
  std::printf(
      "%-13s %s  as planned %3d/%3d kernels %7.1f %7.1f us  fused %3d/%3d (%3d/%3d)  "
      "one %7.1f (%6.0f) %.2f  eight %7.1f (%6.0f) %.2f\n",
      figure.model.c_str(), figure.precision.c_str(), plain.kernels, plain.chain, plain.one_us,
      plain.eight_us, fused.kernels, fused.chain, figure.kernels, figure.chain, fused.one_us,
      figure.one_us, one, fused.eight_us, figure.eight_us, eight);
  std::fflush(stdout);
  std::string far;
  if (!IsNear(one))
    far += fmt::format(" {} {} one stream {:.2f}", figure.model, figure.precision, one);
  if (!IsNear(eight))
    far += fmt::format(" {} {} eight {:.2f}", figure.model, figure.precision, eight);
  return far;
}

double Quantile(const std::vector<double>& sorted, double share) {
  return sorted[static_cast<size_t>(share * static_cast<double>(sorted.size() - 1))];
}

// Prints estimated over measured times; returns the median of all if it is far from 1.
StatusOr<std::string> CompareRecording(const std::string& path, const DeviceSpec& spec) {
  AG_LET(const std::string text, ReadFile(path));
  AG_LET(const Recording recording, ParseRecording(text));
  std::map<std::string, std::vector<double>> ratios;
  for (const RecordedGroup& group : recording.groups) {
    const double ratio = RooflineNs(group.problem, spec) / group.measurement.latency.median_ns;
    ratios[group.problem.pattern].push_back(ratio);
    ratios["all"].push_back(ratio);
  }
  for (auto& [pattern, all] : ratios) {
    std::ranges::sort(all);
    std::printf(
        "%-13s %3zu measured groups: estimate over measured, median %.2f, middle 80 %% %.2f to "
        "%.2f\n",
        pattern.c_str(), all.size(), Quantile(all, 0.5), Quantile(all, 0.1), Quantile(all, 0.9));
  }
  const double median = Quantile(ratios["all"], 0.5);
  return IsNear(median) ? "" : fmt::format(" recorded groups {:.2f}", median);
}

Status RunAll(const Options& options) {
  AG_LET(const DeviceSpec spec, ReadDeviceSpec(options.spec));
  AG_LET(const std::vector<Figure> figures, ReadFigures(options.figures));
  std::string far;
  for (const Figure& figure : figures) {
    AG_LET(const std::string found, Compare(figure, spec));
    far += found;
  }
  AG_LET(const std::string found, CompareRecording(options.recording, spec));
  far += found;
  if (!options.check || far.empty()) return OkStatus();
  return Err(StatusCode::kFailedPrecondition, "not within {}:{}", kRatioMax, far);
}

}  // namespace
}  // namespace ag

int main(int argc, char** argv) {
  ag::Options options;
  CLI::App app("What the simulated H200 answers, beside what is known of it", "simulated_times");
  ag::ShowDefaults(app);
  app.add_option("--spec", options.spec, "Device spec");
  app.add_option("--figures", options.figures, "Figures of models");
  app.add_option("--recording", options.recording, "Measured groups");
  app.add_flag("--check", options.check, "Fail where a ratio is not within 1.3");
  if (const int code = ag::ParseCommandLine(app, argc, argv); code >= 0) return code;
  if (const ag::Status status = ag::RunAll(options); !status.ok()) {
    std::fprintf(stderr, "%s\n", ag::Message(status).c_str());
    return 1;
  }
}
