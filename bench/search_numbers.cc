// The speed and the memory of the search on models of the zoo:
//   build/search_numbers [--spec FILE] [--precision P] [--rounds N] [--threads N]
//                        [--part region|cells|search] [MODEL|FILE.onnx...]
// (deploy/devices/cpu.spec, fp32; 1 round; 1 thread; all parts; the zoo's four largest models)
// Prints for each model
//   - a region, its first 40 operators: the distinct graphs that backtracking scores a second
//   there;
//   - its cells: the forms of them searched, several at once, with a budget that all of them use;
//   - the whole search of the model, cold: graphs, seconds, memory. A hashed roofline of the spec
//     gives the groups' times, so that only the search is timed.
// Seconds are processor time of this process with one thread, which others on the machine change
// little, else time on the clock.
#include <time.h>

#include <cstdio>
#include <fstream>

#include "base/clock.h"
#include "base/command_line.h"
#include "bench/models/load_model.h"
#include "rules/match/rule_clean_up.h"
#include "rules/sets/built_in_rules.h"
#include "search/cell_search.h"
#include "search/part_search.h"
#include "search/testing/test_search.h"
#include "zoo/pieces.h"

namespace ag {
namespace {

struct Options {
  std::string spec = "deploy/devices/cpu.spec";
  std::string precision = "fp32";
  int rounds = 1;
  int threads = 1;
  std::string part;
  std::vector<std::string> models;
};

// The operators of a region, and the graphs that are scored there at most.
constexpr int kRegionOperators = 40;
constexpr int kRegionGraphs = 5000;
// The graphs that are scored in all cells at most.
constexpr int kCellsGraphs = 100'000;

// Returns one line of /proc/self/status, in MiB.
double StatusMib(std::string_view field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(field)) return std::stod(line.substr(field.size() + 1)) / 1024;
  }
  return 0;
}

double Seconds(const Options& options) {
  timespec t{};
  clock_gettime(options.threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

SearchRequest RequestFor(Graph graph, const Options& options, const DeviceSpec& spec) {
  SearchRequest request{.input = std::move(graph), .rules = &BuiltInRules(), .spec = spec};
  request.policy.precision = options.precision;
  request.threads = options.threads;
  request.options.limits.time_max = std::chrono::minutes(10);
  return request;
}

int LargestOf(const SearchLog& log) {
  int nodes = 0;
  for (const SearchedRegion& form : log.regions) nodes = std::max(nodes, form.nodes);
  return nodes;
}

// Backtracking on the model's first operators by themselves, with the slack that cells have.
Status SearchRegion(const Graph& model, const Options& options, const DeviceSpec& spec) {
  AG_LET(const Graph first, FirstOperators(model, kRegionOperators));
  AG_LET(Graph region, CleanUp(first, BuiltInRules()));
  SearchRequest request = RequestFor(std::move(region), options, spec);
  request.options.beta = 2;
  SearchLimits& limits = request.options.limits;
  limits.expansions_max = limits.groups_max = kRegionGraphs;
  FakeMeasurer measurer(spec);
  measurer.keeps_calls = false;
  const TestSearch search(request, BuiltInRules(), measurer, RealClock());
  const double begin = Seconds(options);
  OneRule one_rule(BuiltInRules());
  const PartSearch found =
      SearchPart(search.setting, one_rule, {.backtracking_graphs = kRegionGraphs});
  const double seconds = Seconds(options) - begin;
  const double best_ns = found.results.empty() ? found.estimate_ns : found.results[0].estimate_ns;
  std::printf(
      "  region %3d operators %4d nodes  %5d graphs  %4d expansions  %6.2f s  "
      "%6.0f graphs/s  %.3fx\n",
      Operators(request.input), request.input.size(), search.run.counts.graphs,
      search.run.counts.expansions, seconds, search.run.counts.graphs / seconds,
      found.estimate_ns / best_ns);
  return OkStatus();
}

// The search of the distinct cells, and what it finds taken at their copies.
Status SearchCells(const Graph& model, const Options& options, const DeviceSpec& spec) {
  SearchRequest request = RequestFor(model, options, spec);
  SearchLimits& limits = request.options.limits;
  limits.cell_graphs_max = limits.groups_max = kCellsGraphs;
  FakeMeasurer measurer(spec);
  measurer.keeps_calls = false;
  TestSearch search(request, BuiltInRules(), measurer, RealClock());
  const double input_ns = search.MeasureInput();
  RewriteTrail trail;
  CellSearch cells(search.setting, trail, nullptr, limits.time_max);
  const double begin = Seconds(options);
  const std::optional<RankedGraph> found = cells.Run();
  const double seconds = Seconds(options) - begin;
  const int graphs = search.run.counts.cell_graphs;
  std::printf(
      "  cells  %3zu forms, %3d nodes at most  %5d graphs  %4d groups  %6.2f s  %6.0f graphs/s  "
      "%.3fx  %s\n",
      cells.TakeUses().size(), LargestOf(search.run.log), graphs, search.times.asked(), seconds,
      graphs / seconds, input_ns / (found ? found->estimate_ns : input_ns),
      (found ? found->graph : request.input).digest().Short().c_str());
  return OkStatus();
}

Status SearchModel(Graph model, const Options& options, const DeviceSpec& spec) {
  SearchRequest request = RequestFor(std::move(model), options, spec);
  request.options.limits.rounds_max = options.rounds;
  FakeMeasurer measurer(spec);
  measurer.keeps_calls = false;
  std::ofstream("/proc/self/clear_refs") << "5";  // The peak counts from here.
  const double before_mib = StatusMib("VmRSS:");
  const double begin = Seconds(options);
  AG_LET(const SearchResult result, FindPlan(request, measurer, RealClock()));
  const double seconds = Seconds(options) - begin;
  const int graphs = result.graphs + result.cell_graphs;
  std::printf(
      "  search %3d operators %4d nodes  %5d graphs  %4d expansions  %6.2f s  "
      "%6.0f graphs/s  %.3fx  %4.0f MiB more at the peak  %s\n",
      Operators(request.input), request.input.size(), graphs, result.expansions, seconds,
      graphs / seconds, result.timing.speedup, StatusMib("VmHWM:") - before_mib,
      result.graph.digest().Short().c_str());
  return OkStatus();
}

Status SearchAll(const Options& options) {
  AG_LET(const DeviceSpec spec, ReadDeviceSpec(options.spec));
  for (const std::string& name : options.models) {
    std::printf("%s on %s\n", name.c_str(), spec.name.c_str());
    AG_LET(const LoadedModel loaded, LoadModel(name));
    AG_LET(Graph model, CleanUp(loaded.graph, BuiltInRules()));
    const auto is_wanted = [&](std::string_view part) {
      return options.part.empty() || options.part == part;
    };
    if (is_wanted("region")) AG_TRY(SearchRegion(model, options, spec), "{}", name);
    std::fflush(stdout);
    if (is_wanted("cells")) AG_TRY(SearchCells(model, options, spec), "{}", name);
    std::fflush(stdout);
    if (is_wanted("search")) {
      AG_TRY(SearchModel(std::move(model), options, spec), "{}", name);
    }
    std::fflush(stdout);
  }
  return OkStatus();
}

}  // namespace
}  // namespace ag

int main(int argc, char** argv) {
  ag::Options options;
  CLI::App app("The speed and the memory of the search", "search_numbers");
  ag::ShowDefaults(app);
  app.add_option("--spec", options.spec, "Device spec");
  app.add_option("--precision", options.precision, "Precision");
  app.add_option("--rounds", options.rounds, "Measured rounds");
  app.add_option("--threads", options.threads, "Threads that score")->check(ag::WrongAmount);
  app.add_option("--part", options.part, "Only this part")
      ->check(ag::OneOf({"region", "cells", "search"}));
  app.add_option("MODEL", options.models,
                 "Models of the zoo and ONNX files; none: the four largest of the zoo");
  if (const int code = ag::ParseCommandLine(app, argc, argv); code >= 0) return code;
  if (options.models.empty()) {
    options.models = {"inception_v3", "bert", "nasnet_mobile", "nasnet_a"};
  }
  if (const ag::Status status = ag::SearchAll(options); !status.ok()) {
    std::fprintf(stderr, "%s\n", ag::Message(status).c_str());
    return 1;
  }
}
