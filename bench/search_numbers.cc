// The speed and the memory of the search on models of the zoo:
//   build/search_numbers [--spec FILE] [--precision P] [--rounds N] [--threads N]
//                        [--part region|cells|search] [MODEL|FILE.onnx...]
// (deploy/devices/cpu.spec, fp32; 1 round; 1 thread; all parts; the zoo's four largest models)
// Prints for each model
//   - a region, its first 40 operators: the distinct graphs that backtracking scores a second
//   there; with several threads as many regions at once, one behind the other in the model, by one
//   thread each, as jobs search the forms of cells, and the sum of their rates;
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
#include "base/thread_pool.h"
#include "bench/models/load_model.h"
#include "rules/match/rule_clean_up.h"
#include "rules/sets/built_in_rules.h"
#include "search/cell_search.h"
#include "search/cells.h"
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
// So long regions are searched at once, each again and again: none ends much before the others.
constexpr double kSecondsAtOnce = 3;
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

// Returns the model's first `count` regions, each by itself; a model that has no more whole ones
// begins again with the first.
std::vector<Graph> RegionsOf(const Graph& model, int count) {
  std::vector<NodeId> operators;
  for (NodeId id = 0; id < model.size(); ++id) {
    if (RunsHere(model, id)) operators.push_back(id);
  }
  std::vector<std::vector<NodeId>> parts;
  for (auto at = operators.begin(); std::ssize(parts) < count;) {
    if (operators.end() - at < kRegionOperators) at = operators.begin();
    const auto end = at + std::min<std::ptrdiff_t>(kRegionOperators, operators.end() - at);
    parts.emplace_back(at, end);
    at = end;
  }
  std::vector<Graph> regions;
  for (Cell& cell : CellsOf(model, parts)) regions.push_back(std::move(cell.graph));
  return regions;
}

struct RegionFigures {
  int operators = 0, nodes = 0;
  int searches = 0, graphs = 0, expansions = 0;
  double seconds = 0, gain = 1;

  double rate() const { return graphs / seconds; }
};

// Backtracking on a region, with the slack that cells have and one thread: once, or again and again
// from the beginning until `seconds_min` are over.
StatusOr<RegionFigures> SearchRegion(const Graph& cut, const Options& options,
                                     const DeviceSpec& spec, double seconds_min) {
  AG_LET(Graph region, CleanUp(cut, BuiltInRules()));
  SearchRequest request = RequestFor(std::move(region), options, spec);
  request.threads = 1;
  request.options.beta = 2;
  SearchLimits& limits = request.options.limits;
  limits.expansions_max = limits.groups_max = kRegionGraphs;
  FakeMeasurer measurer(spec);
  measurer.keeps_calls = false;
  RegionFigures figures{Operators(request.input), request.input.size()};
  do {
    const TestSearch search(request, BuiltInRules(), measurer, RealClock());
    OneRule one_rule(BuiltInRules());
    const double begin = Seconds(options);
    const PartSearch found =
        SearchPart(search.setting, one_rule, {.backtracking_graphs = kRegionGraphs});
    figures.seconds += Seconds(options) - begin;
    const double best_ns = found.results.empty() ? found.estimate_ns : found.results[0].estimate_ns;
    figures.gain = found.estimate_ns / best_ns;
    figures.graphs += search.run.counts.graphs;
    figures.expansions += search.run.counts.expansions;
    ++figures.searches;
  } while (figures.seconds < seconds_min);
  return figures;
}

// Searches as many regions as there are threads, at once. Of several the rates count, while all are
// searched.
Status SearchRegions(const Graph& model, const Options& options, const DeviceSpec& spec) {
  const std::vector<Graph> regions = RegionsOf(model, options.threads);
  const double seconds_min = options.threads > 1 ? kSecondsAtOnce : 0;
  std::vector<StatusOr<RegionFigures>> all(regions.size(), RegionFigures());
  ThreadPool pool(options.threads);
  pool.Each(options.threads,
            [&](int i, int) { all[i] = SearchRegion(regions[i], options, spec, seconds_min); });
  double rate = 0;
  for (const StatusOr<RegionFigures>& one : all) {
    AG_LET(const RegionFigures found, one);
    rate += found.rate();
    std::printf(
        "  region %3d operators %4d nodes  %5d graphs  %4d expansions  %6.2f s  %6.0f graphs/s  "
        "%.3fx\n",
        found.operators, found.nodes, found.graphs / found.searches,
        found.expansions / found.searches, found.seconds / found.searches, found.rate(),
        found.gain);
  }
  if (options.threads > 1) std::printf("  regions at once %44.0f graphs/s\n", rate);
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
    if (is_wanted("region")) AG_TRY(SearchRegions(model, options, spec), "{}", name);
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
