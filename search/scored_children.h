// Children of a graph, made and scored: the step that takes nearly all of a search's time. The
// threads of SearchSetting::pool share it; what comes of it does not depend on their number. One
// thread at a time.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "search/derived_graphs.h"
#include "search/scored_graph.h"

namespace ag {

// A child, cleaned up, with what made it.
struct ScoredChild {
  Rewrite rewrite;
  ChildGraph child;
  StatusOr<ScoredGraph> scored;  // As ScoreGraph.
};

// What is made. All must outlive the call.
struct ChildrenRequest {
  const SearchSetting& setting;
  ChildGraphs children;     // Of the parent.
  const MatchSet& matches;  // The parent's.
};

// Returns the positions of all sites.
std::vector<int> AllSites(const MatchSet& matches);

// Makes the children of the sites, positions in matches.sites(), and calls `visit` with each whose
// structure is not in `seen`, in the order of the sites, until `stop` is true before such a one. So
// it does not matter when a limit is reached between two new ones. Adds the structures to `seen`. A
// child that fails by a bug of its rule is a warning.
void VisitChildren(const ChildrenRequest& request, std::span<const int> sites,
                   absl::flat_hash_set<StructureHash>* seen, const std::function<bool()>& stop,
                   const std::function<void(int site, ScoredChild)>& visit);

}  // namespace ag
