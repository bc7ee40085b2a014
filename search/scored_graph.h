// A graph cut into groups, with their times and the paper's estimate: what backtracking compares
// and what plans are made of.
#pragma once

#include <optional>
#include <vector>

#include "search/group_times_cache.h"
#include "search/pair_times.h"
#include "search/search_run.h"

namespace ag {

// What the parts of one search work with. Everything is borrowed and outlives them.
struct SearchSetting {
  const SearchRequest& request;
  const RuleSet& rules;  // Those the policy allows.
  GroupTimesCache& times;
  PairTimes& pairs;
  SearchRun& run;
  // The layout that contractions of every graph prefer; nothing: the cheapest by group times.
  std::optional<Layout> layout = std::nullopt;
};

struct ScoredGraph {
  std::vector<Group> groups;  // With the kernels that measurements chose.
  std::vector<double> group_ns;
  std::vector<int> busy_cores;           // As Measurement::busy_cores, by group.
  double estimate_ns = 0;                // MixedEstimateNs; constant recipes are in no group: free.
  std::vector<GroupProblem> unmeasured;  // Of those groups: what would replace an estimate.
  Status failure;  // Not OK: the graph needs a group whose measurement failed, and why it failed.
};

// Given groups with what they take as they stand; views take nothing. No estimate_ns.
ScoredGraph ScoreGroups(const Graph& graph, const SearchSetting& setting,
                        std::vector<Group> groups);

// The best cover of `graph` by what is known now; nothing is measured. kUnimplemented: the device
// lacks an operator of the graph.
StatusOr<ScoredGraph> ScoreGraph(const Graph& graph, const SearchSetting& setting,
                                 const GroupingOptions& options = {});

// The same, measuring the chosen groups and choosing again until all chosen ones are measured (or
// no more may be, or some keep turning up after many turns).
StatusOr<ScoredGraph> ScoreMeasured(const Graph& graph, const SearchSetting& setting,
                                    const GroupingOptions& options = {});

// How often a cover is chosen anew after its groups were measured. Each turn replaces estimates by
// measurements, mostly of the same few alternatives, so two or three turns settle it.
inline constexpr int kCoverTurnsMax = 8;

}  // namespace ag
