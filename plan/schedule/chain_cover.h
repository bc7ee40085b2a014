// Streams as chains of a minimum path cover: Kwon et al., "Nimble" (NeurIPS 2020), section 4.2 and
// algorithm 1. Pure functions.
#pragma once

#include <vector>

#include "plan/schedule/schedule_problem.h"

namespace ag {

// Returns the chains of a cover of the groups' minimum equivalent graph (its transitive reduction)
// by the fewest paths, from a maximum bipartite matching of its edges: groups that may run beside
// each other are on different streams, and no assignment with that property waits fewer times
// (Nimble, theorem 4). Of equal matchings it prefers edges along long paths.
//
// With more chains than streams it goes beyond the paper: chains are taken in the list order of
// their first groups, each to a stream whose last group is before it (no concurrency is lost), else
// to an empty stream, else to the stream with the least work. Costs O(V E) on V groups and E edges.
std::vector<Stream> ChainCover(const ScheduleProblem& problem);

}  // namespace ag
