// What the search finds where nothing but the search decides: groups take the bare roofline of a
// device spec, plans their simulated time, so a figure repeats exactly.
//   build/search_gains [--spec FILE] [--precision P] [--search ours|paper|paper-without-dp]
//     [--rounds N] [--graphs N] [--stale N] [--threads N] [--check FILE] [--plot FILE.svg]
//     [CASE...]
// (bench/h200-v1.spec of this folder, fp16; all cases: fire1, fire2 and models of the zoo)
// Prints for each case the time of the input's plan and of the best plan, the longest path of the
// best plan's groups, the least time that any schedule of them could take, and the counts; then of
// the candidates that were measured: how many come from round 2 or later, how many have the groups
// of another one of their round, and from where the best plan comes.
// --graphs: graphs scored per round. --stale: those in a row without a smaller estimate that end a
// round; 0: none do. --check: a figure that is more than 1 % above the file's
// ("CASE US" per line), or is not there, ends with 1. --plot: how the best plan's gain over the
// input grows with the graphs that were scored, both axes logarithmic.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <set>

#include "base/clock.h"
#include "base/command_line.h"
#include "base/file.h"
#include "graph/text_form.h"
#include "plan/schedule/least_makespan.h"
#include "rules/match/rule_clean_up.h"
#include "rules/sets/built_in_rules.h"
#include "search/candidates.h"
#include "search/testing/fake_measurer.h"
#include "zoo/zoo.h"

namespace ag {
namespace {

struct Options {
  std::string spec = "bench/h200-v1.spec";
  std::string precision = "fp16";
  std::string search = "ours";
  int rounds = 0, graphs = 0;  // 0: the default.
  int stale = SearchLimits().stale_graphs_max;
  int threads = 1;
  std::string check, plot;
  std::vector<std::string> cases;
};

// What one case's search found, and after how many graphs.
struct Found {
  std::string name;
  double us = 0;
  std::vector<SearchPoint> history;
};

// Returns the first fire modules of SqueezeNet 1.1 behind an input.
std::string FireModules(int count) {
  std::string text = "input x0 f32[1,64,55,55]\n";
  int seed = 0;
  const auto unit = [&](std::string_view y, std::string_view x, int from, int to, int kernel) {
    const int weight = ++seed, bias = ++seed;
    text += fmt::format(
        "{0} = relu(conv({1}, const f32[{2},{3},{4},{4}] seed {5}, const f32[{2}] seed {6}) "
        "strides=[1,1] pads=[{7},{7},{7},{7}] dilations=[1,1])\n",
        y, x, to, from, kernel, weight, bias, kernel / 2);
  };
  for (int i = 0; i < count; ++i) {
    const std::string s = fmt::format("s{}", i), a = fmt::format("a{}", i),
                      b = fmt::format("b{}", i);
    unit(s, fmt::format("x{}", i), i == 0 ? 64 : 128, 16, 1);
    unit(a, s, 16, 64, 1);
    unit(b, s, 16, 64, 3);
    text += fmt::format("x{} = concat({}, {}) axis=1\n", i + 1, a, b);
  }
  return text + fmt::format("output y = x{}\n", count);
}

StatusOr<Graph> GraphOf(const std::string& name) {
  if (name == "fire1") return ParseGraph(FireModules(1));
  if (name == "fire2") return ParseGraph(FireModules(2));
  MemoryWeights weights;
  return BuildZooModel(name, {}, &weights);
}

// What the groups of a plan allow.
struct Bounds {
  double path_ns = 0;   // The longest path of the groups.
  double least_ns = 0;  // LeastMakespanNs: the same with the events that no schedule avoids.
};
Bounds BoundsOf(const Candidate& candidate, const DeviceSpec& spec) {
  std::vector<double> ns;
  for (const Group& group : candidate.plan.groups) {
    const bool is_view = group.pattern == kViewPattern;
    ns.push_back(
        is_view ? 0
                : RooflineNs(ExtractGroup(candidate.graph, group, candidate.plan.policy), spec));
  }
  const ScheduleProblem problem = MakeScheduleProblem(
      candidate.graph, candidate.plan.groups, ns, spec, candidate.plan.policy, spec.streams_max);
  return {std::ranges::max(RemainingNs(problem)), LeastMakespanNs(problem)};
}

// Times on the roofline, and counts candidates of one round that have the same groups.
class CountingMeasurer : public FakeMeasurer {
 public:
  explicit CountingMeasurer(const DeviceSpec& spec) : FakeMeasurer(OnRoofline(spec)) {}

  StatusOr<std::vector<PlanTiming>> MeasurePlans(const std::vector<Candidate>& candidates,
                                                 Effort effort) override {
    std::set<Digest> graphs, groups;
    for (size_t i = 1; effort == Effort::kRanking && i < candidates.size(); ++i) {
      if (!graphs.insert(candidates[i].graph.digest()).second) continue;  // Another plan of it.
      if (!groups.insert(DigestOfGroups(candidates[i])).second) ++equal;
    }
    return FakeMeasurer::MeasurePlans(candidates, effort);
  }

  int equal = 0;
};

std::string NameOf(const CandidateOrigin& origin) {
  switch (origin.stage) {
    case CandidateOrigin::Stage::kInput:
      return "the input's own graph";
    case CandidateOrigin::Stage::kCells:
      return "cells";
    case CandidateOrigin::Stage::kRound:
      return fmt::format("round {}", origin.round);
  }
  AG_CHECK(false);
}

// Prints what the rounds measured.
void PrintCandidates(const SearchResult& result, int equal) {
  int measured = 0, late = 0;
  CandidateOrigin best;
  for (const MeasuredCandidate& one : result.log.measured) {
    if (one.is_final) {
      if (one.timing.speedup == result.timing.speedup) best = one.origin;
      continue;
    }
    const bool is_of_round = one.origin.stage == CandidateOrigin::Stage::kRound;
    measured += is_of_round ? 1 : 0;
    late += is_of_round && one.origin.round >= 2 ? 1 : 0;
  }
  std::printf(
      "  plans measured in rounds %3d  of round 2 or later %3d  with the groups of another %d  "
      "the best comes from %s\n",
      measured, late, equal, NameOf(best).c_str());
}

// Runs one case.
StatusOr<Found> Run(const std::string& name, const Options& options, const DeviceSpec& spec) {
  AG_LET(const Graph graph, GraphOf(name));
  SearchRequest request;
  AG_LET(request.input, CleanUp(graph, BuiltInRules()));
  request.rules = &BuiltInRules();
  request.spec = spec;
  request.policy.precision = options.precision;
  request.threads = options.threads;
  SearchLimits& limits = request.options.limits;
  limits.time_max = Nanos::max();
  if (options.rounds > 0) limits.rounds_max = options.rounds;
  if (options.graphs > 0) limits.graphs_max = options.graphs;
  limits.stale_graphs_max = options.stale;
  if (options.search != "ours") {
    request.options.method =
        options.search == "paper" ? SearchMethod::kPaper : SearchMethod::kPaperWithoutDp;
    if (options.rounds == 0) limits.rounds_max = 1'000'000;
    limits.candidates_max = 20;
  }
  CountingMeasurer measurer(spec);
  const Nanos begin = RealClock().Now();
  AG_LET(const SearchResult result, FindPlan(request, measurer, RealClock()));
  const double seconds = static_cast<double>((RealClock().Now() - begin).count()) / 1e9;
  const double input_us = measurer.SimulatedNs({request.input, result.input_plan}) / 1e3;
  const double best_us = measurer.SimulatedNs(result) / 1e3;
  int rewrites = 0;
  for (const AppliedRewrite& rewrite : result.rewrites) rewrites += rewrite.count;
  const Bounds bounds = BoundsOf(result, spec);
  std::printf(
      "%-14s %5d nodes  input %8.2f us  best %8.2f us  %6.3fx  path %8.2f us  least %8.2f us  %3d "
      "rewrites  "
      "%2d rounds  %5d + %4d graphs  %6.1f s\n",
      name.c_str(), request.input.size(), input_us, best_us, input_us / best_us,
      bounds.path_ns / 1e3, bounds.least_ns / 1e3, rewrites, result.rounds, result.graphs,
      result.cell_graphs, seconds);
  PrintCandidates(result, measurer.equal);
  std::fflush(stdout);
  return Found{name, best_us, result.log.history};
}

// Returns an SVG with one line of steps for each case.
std::string PlotOf(const std::vector<Found>& all) {
  constexpr double kLeft = 60, kTop = 20, kWidth = 560, kHeight = 340;
  double graphs_max = 10, gain_max = 1.1;
  for (const Found& found : all) {
    for (const SearchPoint& point : found.history) {
      graphs_max = std::max<double>(graphs_max, point.graphs);
      gain_max = std::max(gain_max, point.best_speedup);
    }
  }
  const auto x_of = [&](double graphs) {
    return kLeft + kWidth * std::log(std::max(graphs, 1.0)) / std::log(graphs_max);
  };
  const auto y_of = [&](double gain) {
    return kTop + kHeight * (1 - std::log(gain) / std::log(gain_max));
  };
  std::string svg = fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' width='800' height='420' font-family='sans-serif' "
      "font-size='12'>\n<rect x='{}' y='{}' width='{}' height='{}' fill='none' stroke='black'/>\n"
      "<text x='280' y='410'>graphs scored</text>\n<text x='4' y='14'>gain</text>\n",
      kLeft, kTop, kWidth, kHeight);
  for (double graphs = 1; graphs <= graphs_max; graphs *= 10) {
    svg += fmt::format("<text x='{:.1f}' y='380'>{}</text>\n", x_of(graphs), graphs);
  }
  for (const double gain : {1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0}) {
    if (gain > gain_max) break;
    svg += fmt::format("<text x='20' y='{:.1f}'>{}x</text>\n", y_of(gain) + 4, gain);
  }
  for (size_t i = 0; i < all.size(); ++i) {
    const std::string color = fmt::format("hsl({},80%,40%)", 360 * i / all.size());
    std::string line;
    double last = 1;
    for (const SearchPoint& point : all[i].history) {
      const double x = x_of(point.graphs);
      line +=
          fmt::format("{:.1f},{:.1f} {:.1f},{:.1f} ", x, y_of(last), x, y_of(point.best_speedup));
      last = point.best_speedup;
    }
    svg += fmt::format(
        "<polyline points='{}' fill='none' stroke='{}'/>\n<text x='{}' y='{}' fill='{}'>{} "
        "{:.3f}x</text>\n",
        line, color, kLeft + kWidth + 8, kTop + 12 + 16 * static_cast<double>(i), color,
        all[i].name, last);
  }
  return svg + "</svg>\n";
}

std::map<std::string, double> ReadFigures(const std::string& path) {
  std::map<std::string, double> figures;
  std::ifstream file(path);
  std::string name;
  for (double us = 0; file >> name >> us;) figures[name] = us;
  return figures;
}

Status RunAll(const Options& options) {
  AG_LET(const DeviceSpec spec, ReadDeviceSpec(options.spec));
  const std::map<std::string, double> figures = ReadFigures(options.check);
  if (!options.check.empty() && figures.empty()) {
    return Err(StatusCode::kInvalidArgument, "{}: no figures", options.check);
  }
  std::string worse;
  std::vector<Found> all;
  for (const std::string& name : options.cases) {
    AG_LET(Found found, Run(name, options, spec));
    const double us = found.us;
    all.push_back(std::move(found));
    if (options.check.empty()) continue;
    const auto it = figures.find(name);
    if (it == figures.end()) {
      return Err(StatusCode::kInvalidArgument, "{}: no figure of {}", options.check, name);
    }
    if (us > 1.01 * it->second) {
      worse += fmt::format(" {} ({:.2f} us, {:.2f} before)", name, us, it->second);
    }
  }
  if (!options.plot.empty()) AG_TRY(WriteFileAtomically(options.plot, PlotOf(all)));
  if (!worse.empty()) return Err(StatusCode::kFailedPrecondition, "worse:{}", worse);
  return OkStatus();
}

}  // namespace
}  // namespace ag

int main(int argc, char** argv) {
  ag::Options options;
  CLI::App app("What the search finds on the roofline of a spec", "search_gains");
  ag::ShowDefaults(app);
  app.add_option("--spec", options.spec, "Device spec");
  app.add_option("--precision", options.precision, "Precision");
  app.add_option("--search", options.search, "How graphs are searched")
      ->check(ag::OneOf({"ours", "paper", "paper-without-dp"}));
  app.add_option("--rounds", options.rounds, "Measured rounds; 0: the default");
  app.add_option("--graphs", options.graphs, "Graphs scored per round; 0: the default");
  app.add_option("--stale", options.stale, "Graphs without a smaller estimate that end a round");
  app.add_option("--threads", options.threads, "Threads that score graphs");
  app.add_option("--check", options.check, "File of figures that none may exceed by 1 %");
  app.add_option("--plot", options.plot, "SVG file to write: gain by graphs scored");
  app.add_option("CASE", options.cases, "fire1, fire2 and models of the zoo");
  if (const int code = ag::ParseCommandLine(app, argc, argv); code >= 0) return code;
  if (options.cases.empty()) {
    options.cases = {"fire1", "fire2", "squeezenet", "inception_v3", "nasnet_mobile", "bert"};
  }
  if (const ag::Status status = ag::RunAll(options); !status.ok()) {
    std::fprintf(stderr, "%s\n", ag::Message(status).c_str());
    return 1;
  }
}
