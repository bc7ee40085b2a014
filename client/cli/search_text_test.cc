#include "client/cli/search_text.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace ag {
namespace {

namespace v1 = autograph::v1;

v1::Result Searched() {
  v1::Result r;
  r.set_search(v1::Result::COMPLETE);
  r.set_stop_reason(v1::Result::EXHAUSTED);
  r.set_rounds(4);
  r.set_graphs(200);
  r.set_cell_graphs(100);
  r.set_candidates(20);
  r.set_groups_failed(1);
  return r;
}

v1::MeasuredCandidate* Add(double speedup, v1::Result* r) {
  v1::MeasuredCandidate* candidate = r->mutable_search_log()->add_measured();
  candidate->set_stage(v1::MeasuredCandidate::ROUND);
  candidate->set_round(2);
  candidate->set_streams(3);
  candidate->set_rewrites(7);
  v1::PlanEstimates& estimates = *candidate->mutable_estimates();
  estimates.set_makespan_ns(1.5e6);
  estimates.set_sum_ns(2.5e6);
  estimates.set_critical_path_ns(1e6);
  estimates.set_mixed_ns(2.75e6);
  estimates.set_groups(31);
  v1::PlanTiming& timing = *candidate->mutable_timing();
  timing.mutable_latency()->set_median_ns(4e6 / speedup);
  timing.set_speedup(speedup);
  timing.set_speedup_low(speedup - 0.1);
  timing.set_speedup_high(speedup + 0.1);
  return candidate;
}

TEST(SearchText, ATableOfWhatWasTimedWhole) {
  v1::Result r = Searched();
  Add(1, &r)->set_stage(v1::MeasuredCandidate::INPUT);
  Add(2, &r);
  v1::MeasuredCandidate* failed = Add(9, &r);
  failed->clear_timing();
  failed->set_failure("it crashed");
  Add(1.6, &r)->set_stage(v1::MeasuredCandidate::CELLS);
  Add(1.9, &r)->set_in_final(true);
  EXPECT_EQ(
      SearchRows(r),
      "  search       COMPLETE (stopped: exhausted: nothing was left to try); 4 rounds, 300 "
      "graphs, 20 measured whole, 1 groups failed\n"
      "  timed whole  5 timings of whole plans; the fastest, in ms, and what was predicted:\n"
      "               speedup                     median   makespan       sum      path     mixed "
      "groups streams rewrites  from\n"
      "               2.000x (1.900 to 2.100)      2.000      1.500     2.500     1.000     2.750 "
      "    31       3        7  round 2\n"
      "               1.900x (1.800 to 2.000)      2.105      1.500     2.500     1.000     2.750 "
      "    31       3        7  round 2, final\n"
      "               1.600x (1.500 to 1.700)      2.500      1.500     2.500     1.000     2.750 "
      "    31       3        7  cells\n"
      "               1.000x (0.900 to 1.100)      4.000      1.500     2.500     1.000     2.750 "
      "    31       3        7  the input\n");
}

TEST(SearchText, TheTenFastestInTheUnitThatFits) {
  v1::Result r = Searched();
  for (int i = 0; i < 30; ++i) Add(50 + i, &r);
  const std::string rows = SearchRows(r);
  EXPECT_EQ(Split(rows, '\n').size(), 3u + 10u + 1u) << rows;
  EXPECT_NE(rows.find("30 timings of whole plans; the fastest, in us"), std::string::npos) << rows;
  EXPECT_NE(rows.find("79.000x (78.900 to 79.100)    50.633   1500.000"), std::string::npos)
      << rows;
  EXPECT_EQ(rows.find("69.000x"), std::string::npos) << rows;
}

TEST(SearchText, WhyItStoppedInWords) {
  const std::pair<v1::Result::StopReason, const char*> kCases[] = {
      {v1::Result::EXHAUSTED, "(stopped: exhausted: nothing was left to try)"},
      {v1::Result::ROUNDS, "(stopped: rounds: the limit of rounds)"},
      {v1::Result::EXPANSIONS, "(stopped: expansions: the limit of graphs expanded in a round)"},
      {v1::Result::GRAPHS, "(stopped: graphs: the limit of graphs scored in a round)"},
      {v1::Result::STALE,
       "(stopped: stale: nothing better came for long: in the last round by estimate, or in three "
       "rounds)"},
      {v1::Result::GROUPS,
       "(stopped: groups: nothing was left to try, but some groups were only estimated: their "
       "limit)"},
      {v1::Result::TIME, "(stopped: time: the time for it was over)"},
      {v1::Result::UNAVAILABLE,
       "(stopped: unavailable: plans could not be measured any more, the warnings say why)"},
      {v1::Result::CANCELLED, "(stopped: cancelled: it was cancelled)"},
  };
  for (const auto& [reason, text] : kCases) {
    v1::Result r = Searched();
    r.set_stop_reason(reason);
    EXPECT_NE(SearchRows(r).find(text), std::string::npos) << SearchRows(r);
  }
}

}  // namespace
}  // namespace ag
