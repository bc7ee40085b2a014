// A lower bound on the time of every schedule. Pure functions.
#pragma once

#include <cstdint>

#include "plan/schedule/schedule_problem.h"

namespace ag {

// Returns a time before which no schedule of the problem's groups ends, whatever the number of
// streams and even if no group slows another one down: the longest path of groups and events.
//
// A group that reads another one begins an event later, unless it comes directly after it on its
// stream. Each group comes directly after at most one other and directly before at most one, so of
// a group's readers one at most needs no event. The bound is the least longest path over all such
// choices, by branch and bound on each part of the graph between groups that all others are before
// or after (BlocksOf). Where the shortest group takes less than an event, that is what counts
// instead of an event: a group between the two on the stream would hide it. A part that takes more
// than `steps_max` steps counts without events.
double LeastMakespanNs(const ScheduleProblem& problem, int64_t steps_max = 1'000'000);

}  // namespace ag
