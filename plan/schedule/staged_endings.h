// Streams from stages that dynamic programming chooses: Ding et al., "IOS: Inter-Operator Scheduler
// for CNN Acceleration" (MLSys 2021), section 4, algorithm 1. Pure functions.
#pragma once

#include <vector>

#include "plan/schedule/schedule_problem.h"

namespace ag {

// Returns streams whose launches follow stages. A stage is an ending of the groups that are left: a
// subset that holds every reader of its members. Its connected components run beside each other,
// each one on one stream. The least time of a set S of groups is
//   cost[S] = min over the endings E of S of cost[S - E] + time(E),   cost[{}] = 0,
// where time(E) comes from the contention model, and every component but the longest also pays an
// event before and one after. The paper measures time(E), and has a second kind of stage that
// merges operators; here rewrites do that. Pruning (section 4.3): at most 3 groups in a component,
// and at most as many components as streams.
//
// The graph is cut into blocks that are solved one by one, BlocksOf and after 64 groups; of equal
// blocks (as many groups, with the same times, shares and edges) one. All blocks
// together look at no more than kStagedEndingsMax endings, each block at its part by its number of
// groups. A block that needs more is solved again with at most 1 group in a component; if that is
// too much as well, its stages are the groups of equal depth, the greedy schedule that the paper
// compares with. The plan has no barrier between stages: a group waits only for the groups that it
// reads.
std::vector<Stream> StagedEndings(const ScheduleProblem& problem);

// About 4 ms on one core: a bound on the endings that one call looks at.
inline constexpr int kStagedEndingsMax = 5'000;

// The stages of StagedEndings before they have streams: each a list of components, the longest
// first, each a list of groups in launch order.
using Stage = std::vector<std::vector<int>>;
std::vector<Stage> StagesOf(const ScheduleProblem& problem, int endings_max = kStagedEndingsMax);

}  // namespace ag
