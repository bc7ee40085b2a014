#include "server/pipeline/search_report.h"

#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <limits>

namespace ag {
namespace {

// Returns what differs from the text form; empty: nothing.
template <class Message>
std::string Difference(const Message& message, const char* wanted_text) {
  Message wanted;
  if (!google::protobuf::TextFormat::ParseFromString(wanted_text, &wanted)) return wanted_text;
  std::string difference;
  google::protobuf::util::MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&difference);
  return differencer.Compare(wanted, message) ? "" : difference + message.DebugString();
}

SearchResult Found() {
  SearchResult found;
  found.stop_reason = StopReason::kRounds;
  found.rounds = 2;
  found.expansions = 3;
  found.graphs = 4;
  found.cell_graphs = 5;
  found.candidates = 6;
  found.groups_failed = 7;
  found.unfused_timing.latency = {9, 8, 10};
  return found;
}

TEST(SearchReport, CountsAndWhyItEnded) {
  v1::Result result;
  TakeSearchFigures(Found(), &result);
  EXPECT_EQ(Difference(result, R"pb(
              unfused_latency { median_ns: 9 low_ns: 8 high_ns: 10 }
              stop_reason: ROUNDS
              rounds: 2
              expansions: 3
              graphs: 4
              cell_graphs: 5
              candidates: 6
              groups_failed: 7
              search: COMPLETE
              search_log {}
            )pb"),
            "");
}

TEST(SearchReport, WhatWasTimedWithWhatWasPredicted) {
  SearchLog log;
  MeasuredCandidate timed;
  timed.origin = {CandidateOrigin::Stage::kRound, 2};
  timed.is_final = true;
  timed.streams = 3;
  timed.rewrites = 4;
  timed.estimates = {
      .mixed_ns = 5, .sum_ns = 6, .critical_path_ns = 7, .makespan_ns = 8, .groups = 9};
  timed.timing = {.latency = {20, 19, 21},
                  .speedup = 1.5,
                  .speedup_low = 1.4,
                  .speedup_high = 1.6,
                  .verdict = Verdict::kFaster,
                  .blocks = 5};
  log.Add(timed);
  MeasuredCandidate crashed;
  crashed.origin.stage = CandidateOrigin::Stage::kCells;
  crashed.streams = 1;
  crashed.estimates.makespan_ns = std::numeric_limits<double>::infinity();
  crashed.timing.status = Err(StatusCode::kInternal, "it crashed");
  log.Add(crashed);
  log.Add(SearchPoint{.seconds = 0.5, .graphs = 10, .candidates = 2, .best_speedup = 1.5});
  v1::SearchLog proto;
  ToProto(log, &proto);
  EXPECT_EQ(Difference(proto, R"pb(
              measured {
                stage: ROUND
                round: 2
                in_final: true
                streams: 3
                rewrites: 4
                estimates { mixed_ns: 5 sum_ns: 6 critical_path_ns: 7 makespan_ns: 8 groups: 9 }
                timing {
                  latency { median_ns: 20 low_ns: 19 high_ns: 21 }
                  speedup: 1.5
                  speedup_low: 1.4
                  speedup_high: 1.6
                  verdict: FASTER
                  blocks: 5
                }
              }
              measured {
                stage: CELLS
                streams: 1
                estimates {}
                failure: "it crashed"
              }
              history { seconds: 0.5 graphs: 10 candidates: 2 best_speedup: 1.5 }
            )pb"),
            "");
}

TEST(SearchReport, WhatWasSearchedByItself) {
  SearchLog log;
  log.Add(SearchedRegion{.copies = 12,
                         .nodes = 30,
                         .estimate_ns = 100,
                         .best_ns = 90,
                         .seen = 200,
                         .pruned = 150,
                         .groups = 40,
                         .results = 3,
                         .taken = 11});
  log.Add(SearchedRegion{.round = 1,
                         .first_piece = 2,
                         .end_piece = 4,
                         .nodes = 80,
                         .estimate_ns = std::numeric_limits<double>::infinity(),
                         .best_ns = std::numeric_limits<double>::infinity()});
  log.Add(JoinedRegions{.round = 1, .estimate_ns = 700, .parts = {{0, 2, 1}, {2, 4, 0}}});
  v1::SearchLog proto;
  ToProto(log, &proto);
  EXPECT_EQ(Difference(proto, R"pb(
              regions {
                copies: 12
                nodes: 30
                estimate_ns: 100
                best_ns: 90
                seen: 200
                pruned: 150
                groups: 40
                results: 3
                taken: 11
              }
              regions { round: 1 first_piece: 2 end_piece: 4 copies: 1 nodes: 80 }
              joins {
                round: 1
                estimate_ns: 700
                parts { end_piece: 2 result: 1 }
                parts { first_piece: 2 end_piece: 4 }
              }
            )pb"),
            "");
}

}  // namespace
}  // namespace ag
