// A graph with its groups, their times and the paper's estimate. Backtracking compares these; plans
// are made from them. One thread at a time.
#pragma once

#include <optional>
#include <vector>

#include "search/group_times_cache.h"
#include "search/pair_times.h"
#include "search/search_run.h"

namespace ag {

// The shared parts of one search. All references must outlive it.
struct SearchSetting {
  const SearchRequest& request;
  const RuleSet& rules;  // The rules that the policy allows.
  GroupTimesCache& times;
  PairTimes& pairs;
  SearchRun& run;
  // The layout that contractions of every graph prefer; nothing: the cheapest by group times.
  std::optional<Layout> layout = std::nullopt;
};

struct ScoredGraph {
  std::vector<Group> groups;  // With the kernels that measurements chose.
  std::vector<double> group_ns;
  std::vector<int> busy_cores;  // As Measurement::busy_cores, by group.
  double estimate_ns = 0;  // MixedEstimateNs. Constant recipes are in no group and cost nothing.
  std::vector<GroupProblem> unmeasured;  // The problems of groups whose time is an estimate.
  // Not OK: the graph needs a group whose measurement failed; the reason of that failure.
  Status failure;
};

// Returns the given groups with their times; views have time 0. estimate_ns is not set.
ScoredGraph ScoreGroups(const Graph& graph, const SearchSetting& setting,
                        std::vector<Group> groups);

// Returns the best cover of `graph` by the times known now; measures nothing. kUnimplemented: the
// device lacks an operator of the graph.
StatusOr<ScoredGraph> ScoreGraph(const Graph& graph, const SearchSetting& setting,
                                 const GroupingOptions& options = {});

// As ScoreGraph, but measures the chosen groups and chooses again, until all chosen groups are
// measured, or no more groups may be measured, or kCoverTurnsMax turns were made.
StatusOr<ScoredGraph> ScoreMeasured(const Graph& graph, const SearchSetting& setting,
                                    const GroupingOptions& options = {});

// The most times that a cover is chosen again after its groups were measured. Each turn replaces
// estimates by measurements, mostly of the same few alternatives, so two or three turns are enough.
inline constexpr int kCoverTurnsMax = 8;

}  // namespace ag
