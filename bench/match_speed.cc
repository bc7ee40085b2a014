// The speed of matching rules and of applying and hashing rewrites, with this build's rules and
// with three times as many:
//   build/match_speed [MODEL...]      (1,000-node pieces of the four largest, a 100-operator
//   region)
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "base/random.h"
#include "rules/match/applier.h"
#include "rules/match/child_graphs.h"
#include "rules/match/match_set.h"
#include "rules/match/rule_clean_up.h"
#include "rules/sets/built_in_rules.h"
#include "zoo/pieces.h"
#include "zoo/zoo.h"

namespace ag {
namespace {

// Returns this thread's processor time in microseconds, which other processes do not change.
double CpuMicros() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) / 1e3;
}

double Percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
}

// Returns the rules and copies of them under other names, which match the same places.
StatusOr<RuleSet> Times(const RuleSet& rules, int n) {
  RuleSet all = rules;
  for (int i = 2; i <= n; ++i) {
    std::string text;
    for (const Rule& rule : rules.rules()) {
      const size_t end = rule.name.size();
      text += fmt::format("{}-{}{}\n", rule.name, i, rule.text.substr(end));
    }
    AG_LET(const RuleSet copy, RuleSet::Parse(text, "copies"));
    AG_LET(all, RuleSet::Join(all, copy));
  }
  return all;
}

struct Incremental {
  std::vector<double> full_us, next_us;
};

// Walks at random: takes each step's matches from the parent's, and finds all again for comparison.
StatusOr<Incremental> Walk(const Graph& graph, const RuleIndex& index, int steps) {
  Random random(1);
  Incremental times;
  MatchSet matches(index, graph);
  for (int step = 0; step < steps && !matches.sites().empty(); ++step) {
    const auto& sites = matches.sites();
    const Rewrite rewrite = matches.At(sites[random.Below(sites.size())]);
    GraphPatch patch(matches.graph());
    std::vector<NodeId> place;
    if (!ApplyTo(&patch, *rewrite.rule->pattern, *rewrite.bindings).ok()) continue;
    const StatusOr<Graph> child = patch.Build(&place);
    if (!child.ok() || child->size() > graph.size() * 5 / 4) continue;
    const double begin = CpuMicros();
    MatchSet next = matches.Next(*child, place);
    const double middle = CpuMicros();
    const MatchSet full(index, *child);
    times.full_us.push_back(CpuMicros() - middle);
    times.next_us.push_back(middle - begin);
    AG_CHECK(full.sites().size() == next.sites().size());
    matches = std::move(next);
  }
  return times;
}

Status PrintMatching(const std::string& name, const Graph& graph, const RuleSet& rules) {
  const RuleIndex index(rules, RuleIndex::Kind::kSearch);
  const MatchSet matches(index, graph);
  AG_LET(const Incremental times, Walk(graph, index, 400));
  std::printf(
      "%-14s %4d nodes %4zu rules %5zu rewrites  full %7.3f ms  incremental median %6.3f "
      "p90 %6.3f ms\n",
      name.c_str(), graph.size(), index.rules().size(), matches.sites().size(),
      Percentile(times.full_us, 0.5) / 1e3, Percentile(times.next_us, 0.5) / 1e3,
      Percentile(times.next_us, 0.9) / 1e3);
  return OkStatus();
}

// Applies every rewrite of the region and hashes the result, repeatedly for a second.
Status PrintApplied(const std::string& name, const Graph& graph, const RuleSet& rules) {
  const RuleIndex index(rules, RuleIndex::Kind::kSearch);
  const RuleIndex clean_up(rules, RuleIndex::Kind::kCleanUp);
  const MatchSet matches(index, graph);
  if (matches.sites().empty()) return OkStatus();
  ChildGraphs children(graph, clean_up, {.parent_is_clean = true});
  int64_t hashed = 0;
  uint64_t sum = 0;
  const double begin = CpuMicros();
  while (CpuMicros() - begin < 1e6) {
    for (const Site& site : matches.sites()) {
      const StatusOr<StructureHash> hash = children.Try(matches.At(site));
      if (!hash.ok()) continue;
      sum += hash->a;
      ++hashed;
    }
  }
  const double seconds = (CpuMicros() - begin) / 1e6;
  int made = 0;
  const double made_begin = CpuMicros();
  while (CpuMicros() - made_begin < 1e6) {
    for (const Site& site : matches.sites()) {
      made += children.Try(matches.At(site)).ok() && children.Make().ok();
    }
  }
  const double made_seconds = (CpuMicros() - made_begin) / 1e6;
  std::printf(
      "%-14s %4d operators %4d nodes %4zu rewrites  %8.0f applied and hashed/s  "
      "%7.0f made and cleaned up/s  (%04x)\n",
      name.c_str(), Operators(graph), graph.size(), matches.sites().size(),
      static_cast<double>(hashed) / seconds, made / made_seconds,
      static_cast<unsigned>(sum & 0xffff));
  return OkStatus();
}

Status Measure(const std::string& name) {
  MemoryWeights weights;
  AG_LET(const Graph zoo, BuildZooModel(name, {}, &weights));
  AG_LET(const Graph graph, CleanUp(zoo, BuiltInRules()));
  AG_LET(const Graph thousand, FirstNodes(graph, 1000));
  AG_LET(const Graph region, FirstOperators(graph, 100));
  for (const int n : {1, 3}) {
    AG_LET(const RuleSet rules, Times(BuiltInRules(), n));
    AG_TRY(PrintMatching(name, thousand, rules));
    AG_TRY(PrintApplied(name, region, rules));
  }
  return OkStatus();
}

}  // namespace
}  // namespace ag

int main(int argc, char** argv) {
  std::vector<std::string> names(argv + std::min(argc, 1), argv + argc);
  if (names.empty()) names = {"inception_v3", "bert", "nasnet_mobile", "nasnet_a"};
  for (const std::string& name : names) {
    if (const ag::Status status = ag::Measure(name); !status.ok()) {
      std::fprintf(stderr, "%s: %s\n", name.c_str(), ag::Message(status).c_str());
      return 1;
    }
  }
}
