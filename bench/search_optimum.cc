// How often the search finds the best graph that there is: on small random graphs, beside all
// graphs within a few rewrites (brute force), with the same rules and the same objective.
//   build/search_optimum [--spec FILE] [--graphs N] [--operators N] [--rewrites N] [--states N]
//     [--gain X] [--seed N] [--check SHARE] [--all]
// (bench/h200-v1.spec, 200 graphs of 6 to 20 operators, 6 rewrites, 20,000 graphs, 1.05, seed 1)
// Groups take the bare roofline of the spec, fp16. Graphs are drawn until N of them have no more
// than --states graphs within the rewrites, and gain at least --gain. One is found when the
// estimate of the search's answer is no more than that of the best graph. Prints each other one
// (--all: each graph), the share found, and how many more have a plan, by whichever scheduler,
// whose simulated time is no more than that estimate. --check: a smaller share of both ends with 1.
#include <cstdio>
#include <deque>

#include "absl/container/flat_hash_set.h"
#include "base/clock.h"
#include "base/command_line.h"
#include "graph/testing/random_modules.h"
#include "graph/text_form.h"
#include "rules/match/rule_clean_up.h"
#include "rules/sets/built_in_rules.h"
#include "search/scored_children.h"
#include "search/testing/test_search.h"

namespace ag {
namespace {

struct Options {
  std::string spec = "bench/h200-v1.spec";
  int graphs = 200, operators = 20, rewrites = 6, states = 20'000;
  uint64_t seed = 1;
  double gain = 1.05, check = 0;
  bool all = false;
};

// The fewest operators of a graph.
constexpr int kOperatorsMin = 6;

struct Optimum {
  double input_ns = 0;
  double best_ns = 0;
  int states = 0;
  std::string path;  // The rules of the shortest way to the best graph.
  bool is_complete = true;
};

// Breadth first: all graphs within options.rewrites rewrites, each structure once.
Optimum Enumerate(const SearchRequest& request, const SearchSetting& setting,
                  const Options& options) {
  Optimum optimum;
  const ScoredGraph input = *ScoreGraph(request.input, setting);
  optimum.input_ns = optimum.best_ns = input.estimate_ns;
  DerivedGraphs graphs(setting.rules, /*nodes_max=*/16 * DerivedGraphs::kNodesMax);
  absl::flat_hash_set<StructureHash> seen = {HashOfStructure(request.input)};
  struct State {
    DerivedGraphs::Id graph;
    int rewrites;
    std::string path;
  };
  std::deque<State> queue = {{graphs.AddRoot(request.input), 0, ""}};
  for (; !queue.empty(); queue.pop_front()) {
    const State state = queue.front();
    if (state.rewrites >= options.rewrites) continue;
    const std::shared_ptr<const MatchSet> matches = graphs.Matches(state.graph);
    const auto stop = [&] { return static_cast<int>(seen.size()) > options.states; };
    const auto visit = [&](int, ScoredChild child) {
      const double ns = EstimateOf(child.scored);
      const std::string path = state.path + " " + child.rewrite.rule->name;
      if (IsGain(ns, optimum.best_ns)) {
        optimum.best_ns = ns;
        optimum.path = path;
      }
      queue.push_back({graphs.Add(state.graph, std::move(child.rewrite), std::move(child.child)),
                       state.rewrites + 1, path});
    };
    VisitChildren({setting, graphs.Children(state.graph), *matches}, AllSites(*matches), &seen,
                  stop, visit);
    if (stop()) {
      optimum.is_complete = false;
      return optimum;
    }
  }
  optimum.states = static_cast<int>(seen.size());
  return optimum;
}

struct Counts {
  int counted = 0, found = 0, planned = 0, too_large = 0, no_gain = 0;
};

Status RunOne(uint64_t seed, const Options& options, const DeviceSpec& spec, Counts* counts) {
  const int sizes = options.operators - kOperatorsMin + 1;
  SearchRequest request;
  AG_LET(request.input, CleanUp(RandomModules(seed, kOperatorsMin + static_cast<int>(seed) % sizes),
                                BuiltInRules()));
  request.rules = &BuiltInRules();
  request.spec = spec;
  request.policy.precision = "fp16";
  request.options.limits.time_max = Nanos::max();
  FakeMeasurer measurer = FakeMeasurer::OnRoofline(spec);
  const RuleSet rules = BuiltInRules().Without({}, request.policy.nonfinite_strict);
  const TestSearch search(request, rules, measurer, RealClock());
  const SearchSetting& setting = search.setting;
  const Optimum optimum = Enumerate(request, setting, options);
  if (!optimum.is_complete) {
    ++counts->too_large;
    return OkStatus();
  }
  if (optimum.input_ns < options.gain * optimum.best_ns) {
    ++counts->no_gain;
    return OkStatus();
  }
  ++counts->counted;
  AG_LET(const SearchResult result, FindPlan(request, measurer, RealClock()));
  const double ns = EstimateNs(result.graph, setting);
  const double plan_ns = measurer.SimulatedNs(result);
  const bool is_found = !IsGain(optimum.best_ns, ns);
  counts->found += is_found ? 1 : 0;
  counts->planned += !is_found && !IsGain(optimum.best_ns, plan_ns) ? 1 : 0;
  if (is_found && !options.all) return OkStatus();
  std::string way;
  for (const AppliedRewrite& rewrite : result.rewrites) {
    way += fmt::format(" {} x {}", rewrite.count, rewrite.rule);
  }
  std::printf(
      "seed %lu: %d nodes, %d graphs, input %.2f us, best %.2f us:%s; found %.2f us, its "
      "plan %.2f us, after %d + %d graphs:%s\n",
      seed, request.input.size(), optimum.states, optimum.input_ns / 1e3, optimum.best_ns / 1e3,
      optimum.path.c_str(), ns / 1e3, plan_ns / 1e3, result.graphs, result.cell_graphs,
      way.c_str());
  std::fflush(stdout);
  return OkStatus();
}

Status RunAll(const Options& options) {
  AG_LET(const DeviceSpec spec, ReadDeviceSpec(options.spec));
  Counts counts;
  for (uint64_t seed = options.seed; counts.counted < options.graphs; ++seed) {
    AG_TRY(RunOne(seed, options, spec, &counts), "seed {}", seed);
  }
  const double share =
      static_cast<double>(counts.found + counts.planned) / std::max(counts.counted, 1);
  std::printf(
      "%d of %d found, %d more with a plan that is simulated no slower (%.3f); left out: %d with "
      "less to gain, %d with too many graphs\n",
      counts.found, counts.counted, counts.planned, share, counts.no_gain, counts.too_large);
  if (share >= options.check) return OkStatus();
  return Err(StatusCode::kFailedPrecondition, "found {:.3f}, {:.3f} asked", share, options.check);
}

}  // namespace
}  // namespace ag

int main(int argc, char** argv) {
  ag::Options options;
  CLI::App app("How often the search finds the best graph that there is", "search_optimum");
  ag::ShowDefaults(app);
  app.add_option("--spec", options.spec, "Device spec");
  app.add_option("--graphs", options.graphs, "Graphs that count");
  app.add_option("--operators", options.operators, "Operators of a graph at most")
      ->check(CLI::Range(ag::kOperatorsMin, 1000));
  app.add_option("--rewrites", options.rewrites, "Rewrites from the graph at most");
  app.add_option("--states", options.states, "Graphs within these rewrites at most");
  app.add_option("--gain", options.gain, "What the best graph gains at least");
  app.add_option("--seed", options.seed, "The first graph");
  app.add_option("--check", options.check, "Fail where a smaller share is found");
  app.add_flag("--all", options.all, "Print each graph, not only misses");
  if (const int code = ag::ParseCommandLine(app, argc, argv); code >= 0) return code;
  if (const ag::Status status = ag::RunAll(options); !status.ok()) {
    std::fprintf(stderr, "%s\n", ag::Message(status).c_str());
    return 1;
  }
}
