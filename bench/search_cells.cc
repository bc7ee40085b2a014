// How models divide into cells (search/cells.h), and what a model takes whose cells are known.
//   build/search_cells [--spec FILE] [--precision P] [--list] CASE...
//   build/search_cells [--spec FILE] [--precision P] --after FIRST CASE...
// (bench/h200-v1.spec, fp16). A case is a model of the zoo, or bert:N with N layers.
// Prints for each case its operators, those in cells, cells, forms and the largest cell; --list:
// each form. With --after: the search of FIRST fills a store of regions; each case is then searched
// without and with what the store has, on simulated times as search_gains has them. Seconds are the
// processor's.
#include <cstdio>
#include <ctime>
#include <map>

#include "base/clock.h"
#include "base/command_line.h"
#include "base/text.h"
#include "rules/match/rule_clean_up.h"
#include "rules/sets/built_in_rules.h"
#include "search/cells.h"
#include "search/testing/fake_measurer.h"
#include "zoo/networks.h"
#include "zoo/pieces.h"
#include "zoo/zoo.h"

namespace ag {
namespace {

struct Options {
  std::string spec = "bench/h200-v1.spec";
  std::string precision = "fp16";
  std::string after;
  bool list = false;
  std::vector<std::string> cases;
};

double CpuSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

StatusOr<Graph> GraphOf(const std::string& name) {
  MemoryWeights weights;
  constexpr std::string_view kBert = "bert:";
  if (!name.starts_with(kBert)) return BuildZooModel(name, {}, &weights);
  AG_LET(const int64_t layers, ParseInt(name.substr(kBert.size())));
  ZooBuilder builder(1, &weights);
  BuildBert(builder, 1, {.layers = layers});
  return builder.Build();
}

// Prints how the case divides.
Status PrintCells(const std::string& name, const Options& options) {
  AG_LET(const Graph graph, GraphOf(name));
  AG_LET(const Graph clean, CleanUp(graph, BuiltInRules()));
  const double begin = CpuSeconds();
  const std::vector<Cell> cells = CutIntoCells(clean);
  const double seconds = CpuSeconds() - begin;
  std::map<Digest, int> copies;  // By form.
  std::vector<const Cell*> firsts;
  size_t covered = 0, largest = 0, to_solve = 0;
  for (const Cell& cell : cells) {
    if (copies[cell.form]++ == 0) firsts.push_back(&cell);
    covered += cell.nodes.size();
    largest = std::max(largest, cell.nodes.size());
  }
  for (const Cell* cell : firsts) to_solve += cell->nodes.size();
  std::printf(
      "%-14s %5d operators, %5zu in cells  %4zu cells  %3zu forms of %5zu operators  "
      "largest %3zu  %6.2f s\n",
      name.c_str(), Operators(clean), covered, cells.size(), copies.size(), to_solve, largest,
      seconds);
  if (!options.list) return OkStatus();
  for (const Cell* cell : firsts) {
    std::string operators;
    for (const NodeId id : cell->nodes) {
      operators += fmt::format(" {}", Info(clean.node(id).op).text_name);
    }
    std::printf("  %3d x %3zu operators, %zu inputs, %zu outputs:%.200s\n", copies[cell->form],
                cell->nodes.size(), cell->inputs.size(), cell->graph.outputs().size(),
                operators.c_str());
  }
  return OkStatus();
}

struct Searched {
  double seconds = 0;
  double best_us = 0;
  SearchResult result;
};

StatusOr<Searched> Search(const std::string& name, const Options& options, const DeviceSpec& spec,
                          RegionStore* regions) {
  AG_LET(const Graph graph, GraphOf(name));
  SearchRequest request;
  AG_LET(request.input, CleanUp(graph, BuiltInRules()));
  request.rules = &BuiltInRules();
  request.spec = spec;
  request.environment = "spec=" + spec.name;
  request.policy.precision = options.precision;
  request.options.limits.time_max = Nanos::max();
  FakeMeasurer measurer = FakeMeasurer::OnRoofline(spec);
  const double begin = CpuSeconds();
  AG_LET(SearchResult result, FindPlan(request, measurer, RealClock(), regions));
  const double seconds = CpuSeconds() - begin;
  const double best_us = measurer.SimulatedNs(result) / 1e3;
  return Searched{seconds, best_us, std::move(result)};
}

void PrintSearch(const std::string& name, const char* how, const Searched& searched) {
  std::map<RegionOrigin, int> origins;
  for (const RegionUse& use : searched.result.regions) ++origins[use.origin];
  std::printf(
      "%-14s %-5s %7.2f s  best %8.2f us  %3zu forms: %3d known %3d searched %3d cut  "
      "%5d + %4d graphs  %d rounds\n",
      name.c_str(), how, searched.seconds, searched.best_us, searched.result.regions.size(),
      origins[RegionOrigin::kKnown], origins[RegionOrigin::kSearched],
      origins[RegionOrigin::kCut] + origins[RegionOrigin::kNotReached], searched.result.graphs,
      searched.result.cell_graphs, searched.result.rounds);
  std::fflush(stdout);
}

Status CompareSearches(const Options& options) {
  AG_LET(const DeviceSpec spec, ReadDeviceSpec(options.spec));
  MemoryRegions regions;
  AG_LET(const Searched first, Search(options.after, options, spec, &regions));
  PrintSearch(options.after, "first", first);
  for (const std::string& name : options.cases) {
    AG_LET(const Searched cold, Search(name, options, spec, nullptr));
    PrintSearch(name, "cold", cold);
    MemoryRegions known = regions;
    AG_LET(const Searched warm, Search(name, options, spec, &known));
    PrintSearch(name, "known", warm);
    std::printf("%-14s %.1f %% of its cold time\n", name.c_str(),
                100 * warm.seconds / cold.seconds);
  }
  return OkStatus();
}

Status RunAll(const Options& options) {
  if (!options.after.empty()) return CompareSearches(options);
  for (const std::string& name : options.cases) AG_TRY(PrintCells(name, options), "{}", name);
  return OkStatus();
}

}  // namespace
}  // namespace ag

int main(int argc, char** argv) {
  ag::Options options;
  CLI::App app("How models divide into cells, and what known cells save", "search_cells");
  ag::ShowDefaults(app);
  app.add_option("--spec", options.spec, "Device spec");
  app.add_option("--precision", options.precision, "Precision");
  app.add_option("--after", options.after, "The case whose search fills the store of regions");
  app.add_flag("--list", options.list, "List each form");
  app.add_option("CASE", options.cases, "Models of the zoo, or bert:N with N layers");
  if (const int code = ag::ParseCommandLine(app, argc, argv); code >= 0) return code;
  if (options.cases.empty()) options.cases = {"bert", "nasnet_mobile", "nasnet_a", "squeezenet"};
  if (const ag::Status status = ag::RunAll(options); !status.ok()) {
    std::fprintf(stderr, "%s\n", ag::Message(status).c_str());
    return 1;
  }
}
