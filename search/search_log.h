// What one search remembers of its way, for its report: every plan that it timed whole, with what
// was predicted of it, and how far it was by then. Nothing in it decides anything. One thread at a
// time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/measurement.h"
#include "plan/schedule/plan_estimates.h"

namespace ag {

// The part of the search that a plan's graph comes from.
struct CandidateOrigin {
  enum class Stage : uint8_t {
    kInput,  // The input's own graph.
    kCells,  // What was found inside cells before the rounds.
    kRound,  // Algorithm 1.
  };
  Stage stage = Stage::kInput;
  int round = 0;  // Of kRound, from 1.
  bool operator==(const CandidateOrigin&) const = default;
};

// A graph and a plan of it that were timed whole, without the graph and the plan. One that meets
// the input again in the final comparison is there twice.
struct MeasuredCandidate {
  CandidateOrigin origin;
  bool is_final = false;  // Timed in the final comparison; else beside the plans of its stage.
  int streams = 0;        // With launches.
  int rewrites = 0;       // From the input to its graph.
  PlanEstimates estimates;
  PlanTiming timing;  // The speedup is over the input in the same call.
};

// A part of the graph that was searched by itself: a form of cells (search/cell_search.h), or a
// region of the paper's search (search/region_search.h).
struct SearchedRegion {
  int round = 0;  // 0: a form of cells, before the rounds.
  // Of the paper's search: the run of adjacent pieces.
  int first_piece = 0, end_piece = 0;
  int copies = 1;          // Cells of the form.
  int nodes = 0;           // Of one copy.
  double estimate_ns = 0;  // Of one copy as it is, by itself; infinity: there is none.
  double best_ns = 0;      // Of the best result, by itself; estimate_ns: no result is below it.
  int seen = 0;            // Graphs scored.
  int pruned = 0;          // As SearchCounts::pruned.
  int groups = 0;          // Groups requested.
  int results = 0;         // Results below estimate_ns that were kept.
  int taken = 0;           // Of cells: copies at which a result was taken.
};

// A cover of the whole graph by results of regions, as the paper's dynamic programming joined it.
struct JoinedRegions {
  struct Part {
    int first_piece = 0, end_piece = 0;
    int result = 0;  // Of the region, from 0.
    bool operator==(const Part&) const = default;
  };
  int round = 0;
  double estimate_ns = 0;   // Of the whole graph.
  std::vector<Part> parts;  // The other pieces stay as they are.
};

// How far the search was when a set of plans had been timed.
struct SearchPoint {
  double seconds = 0;  // By the search's clock, since it began.
  int graphs = 0;      // Scored, those inside cells among them.
  int candidates = 0;  // As SearchCounts::candidates.
  double best_speedup = 1;
};

struct SearchLog {
  // More are not kept, except those of the final comparison.
  static constexpr size_t kMeasuredMax = 10'000;
  static constexpr size_t kHistoryMax = 1'000;
  static constexpr size_t kRegionsMax = 1'000;  // Of regions, and of joins.

  void Add(MeasuredCandidate candidate);
  // When the history is full, every second point of it is dropped first.
  void Add(const SearchPoint& point);
  void Add(const SearchedRegion& region);
  void Add(JoinedRegions join);

  std::vector<MeasuredCandidate> measured;  // In the order of timing.
  std::vector<SearchPoint> history;
  std::vector<SearchedRegion> regions;
  std::vector<JoinedRegions> joins;  // Those of graphs that were offered as candidates.
};

}  // namespace ag
