#include "server/pipeline/search_report.h"

#include <cmath>

#include "wire/measurement_wire.h"

namespace ag {

namespace {

v1::Result::SearchState ToWire(SearchState state) {
  switch (state) {
    case SearchState::kComplete:
      return v1::Result::COMPLETE;
    case SearchState::kStopped:
      return v1::Result::STOPPED;
    case SearchState::kNotSearched:
      return v1::Result::NOT_SEARCHED;
  }
  AG_CHECK(false);
}

v1::Result::StopReason ToWire(StopReason reason) {
  switch (reason) {
    case StopReason::kNone:
      return v1::Result::EXHAUSTED;
    case StopReason::kRounds:
      return v1::Result::ROUNDS;
    case StopReason::kExpansions:
      return v1::Result::EXPANSIONS;
    case StopReason::kGraphs:
      return v1::Result::GRAPHS;
    case StopReason::kStale:
      return v1::Result::STALE;
    case StopReason::kGroups:
      return v1::Result::GROUPS;
    case StopReason::kTime:
      return v1::Result::TIME;
    case StopReason::kUnavailable:
      return v1::Result::UNAVAILABLE;
    case StopReason::kCancelled:
      return v1::Result::CANCELLED;
    case StopReason::kGoesOn:
      return v1::Result::GOES_ON;
  }
  AG_CHECK(false);
}

v1::MeasuredCandidate::Stage ToWire(CandidateOrigin::Stage stage) {
  switch (stage) {
    case CandidateOrigin::Stage::kInput:
      return v1::MeasuredCandidate::INPUT;
    case CandidateOrigin::Stage::kCells:
      return v1::MeasuredCandidate::CELLS;
    case CandidateOrigin::Stage::kRound:
      return v1::MeasuredCandidate::ROUND;
  }
  AG_CHECK(false);
}

// JSON has no infinity: an estimate that there is not is 0.
double Known(double ns) { return std::isfinite(ns) ? ns : 0; }

void ToWire(const PlanEstimates& estimates, v1::PlanEstimates* proto) {
  proto->set_mixed_ns(Known(estimates.mixed_ns));
  proto->set_sum_ns(Known(estimates.sum_ns));
  proto->set_critical_path_ns(Known(estimates.critical_path_ns));
  proto->set_makespan_ns(Known(estimates.makespan_ns));
  proto->set_groups(estimates.groups);
}

void ToWire(const MeasuredCandidate& candidate, v1::MeasuredCandidate* proto) {
  proto->set_stage(ToWire(candidate.origin.stage));
  proto->set_round(candidate.origin.round);
  proto->set_in_final(candidate.is_final);
  proto->set_streams(candidate.streams);
  proto->set_rewrites(candidate.rewrites);
  ToWire(candidate.estimates, proto->mutable_estimates());
  if (candidate.timing.status.ok()) {
    ToProto(candidate.timing, proto->mutable_timing());
  } else {
    proto->set_failure(Message(candidate.timing.status));
  }
}

void ToWire(const SearchedRegion& region, v1::SearchedRegion* proto) {
  proto->set_round(region.round);
  proto->set_first_piece(region.first_piece);
  proto->set_end_piece(region.end_piece);
  proto->set_copies(region.copies);
  proto->set_nodes(region.nodes);
  proto->set_estimate_ns(Known(region.estimate_ns));
  proto->set_best_ns(Known(region.best_ns));
  proto->set_seen(region.seen);
  proto->set_pruned(region.pruned);
  proto->set_groups(region.groups);
  proto->set_results(region.results);
  proto->set_taken(region.taken);
}

void ToWire(const JoinedRegions& join, v1::JoinedRegions* proto) {
  proto->set_round(join.round);
  proto->set_estimate_ns(Known(join.estimate_ns));
  for (const JoinedRegions::Part& part : join.parts) {
    v1::JoinedRegions::Part* p = proto->add_parts();
    p->set_first_piece(part.first_piece);
    p->set_end_piece(part.end_piece);
    p->set_result(part.result);
  }
}

}  // namespace

void TakeSearchFigures(const SearchResult& found, v1::Result* result) {
  result->set_search(ToWire(SearchStateOf(found.stop_reason, found.rounds, found.cell_graphs)));
  result->set_stop_reason(ToWire(found.stop_reason));
  ToProto(found.unfused_timing.latency, result->mutable_unfused_latency());
  result->set_rounds(found.rounds);
  result->set_expansions(found.expansions);
  result->set_graphs(found.graphs);
  result->set_cell_graphs(found.cell_graphs);
  result->set_candidates(found.candidates);
  result->set_groups_failed(found.groups_failed);
  ToProto(found.log, result->mutable_search_log());
}

void ToProto(const AppliedRewrite& rewrite, v1::RewriteCount* proto) {
  proto->set_rule(rewrite.rule);
  proto->set_count(rewrite.count);
  proto->set_gain_ns(rewrite.gain_ns);
  if (rewrite.gain) ToProto(*rewrite.gain, proto->mutable_gain());
  proto->mutable_also_left_out()->Assign(rewrite.also_left_out.begin(),
                                         rewrite.also_left_out.end());
}

void ToProto(const SearchLog& log, v1::SearchLog* proto) {
  for (const MeasuredCandidate& candidate : log.measured) ToWire(candidate, proto->add_measured());
  for (const SearchPoint& point : log.history) {
    v1::SearchPoint* p = proto->add_history();
    p->set_seconds(point.seconds);
    p->set_graphs(point.graphs);
    p->set_candidates(point.candidates);
    p->set_best_speedup(point.best_speedup);
  }
  for (const SearchedRegion& region : log.regions) ToWire(region, proto->add_regions());
  for (const JoinedRegions& join : log.joins) ToWire(join, proto->add_joins());
}

}  // namespace ag
