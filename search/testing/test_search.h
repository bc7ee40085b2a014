// What one search shares, for tests and benches of its parts. One thread at a time.
#pragma once

#include "search/scored_graph.h"
#include "search/testing/fake_measurer.h"

namespace ag {

struct TestSearch {
  // All must outlive it.
  TestSearch(const SearchRequest& request, const RuleSet& rules, FakeMeasurer& measurer,
             Clock& clock)
      : run(request, clock),
        times(request.spec, measurer.ForGroups(),
              {.groups_max = request.options.limits.groups_max}),
        pairs(request.spec, measurer, request.options.limits.pairs_max),
        pool(request.threads),
        setting{request, rules, times, pairs, run, pool} {}

  // Measures the input's groups and returns its estimate.
  double MeasureInput() {
    const Graph& input = setting.request.input;
    AG_CHECK(FormMeasuredGroups(setting.For(input), times).ok());
    const StatusOr<ScoredGraph> scored = ScoreGraph(input, setting);
    AG_CHECK(scored.ok());
    return scored->estimate_ns;
  }

  SearchRun run;
  LearnedTimes times;
  PairTimes pairs;
  ThreadPool pool;
  const SearchSetting setting;
};

}  // namespace ag
