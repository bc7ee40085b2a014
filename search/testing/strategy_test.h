// The fixture for tests of a strategy of the search.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "search/backtracking.h"
#include "search/testing/test_search.h"

namespace ag {

// Runs one strategy (backtracking.h, beam_search.h, region_search.h) on a small graph.
class StrategyTest : public testing::Test {
 protected:
  // Returns what `run(setting, root)` returns for `graph`, whose groups are measured first.
  template <class Run>
  std::vector<RankedGraph> RunOn(std::string_view graph, std::string_view rules,
                                 const SearchOptions& options, Run run) {
    rules_ = TestRules(rules);
    request_ = {.input = TestGraph(graph), .spec = spec_, .options = options};
    TestSearch search(request_, rules_, measurer_, clock_);
    root_ns_ = search.MeasureInput();
    auto best = run(search.setting, RankedGraph{request_.input, root_ns_});
    counts_ = search.run.counts;
    log_ = search.run.log;
    return best;
  }

  template <class Strategy>
  std::vector<RankedGraph> RunStrategy(std::string_view graph, std::string_view rules,
                                       const SearchOptions& options) {
    return RunOn(graph, rules, options, [&](const SearchSetting& setting, const RankedGraph& root) {
      Strategy strategy(setting, trail_);
      auto best = strategy.Run(root, skip_, options.limits.graphs_max);
      stop_ = strategy.stop();
      return best;
    });
  }

  DeviceSpec spec_ = TestSpec();
  FakeMeasurer measurer_{spec_};
  FakeClock clock_;
  RuleSet rules_;
  SearchRequest request_;
  RewriteTrail trail_;
  absl::flat_hash_set<StructureHash> skip_;
  double root_ns_ = 0;
  StopReason stop_ = StopReason::kNone;
  SearchCounts counts_;
  SearchLog log_;
};

}  // namespace ag
