// All schedulers behind one interface. Pure functions. To add one: a file with its function, a line
// in schedulers.cc, a row in docs/search.md; the property tests of schedulers_test.cc then hold for
// it as well.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "plan/schedule/schedule_problem.h"

namespace ag {

struct Scheduler {
  std::string_view name;
  // Returns at most problem.streams streams. Each group except views is launched once, after the
  // groups that it reads; waits are transitively reduced; streams do not wait in a cycle. The same
  // problem gives the same streams.
  std::vector<Stream> (*schedule)(const ScheduleProblem& problem);
};

// Returns every scheduler. The first one is one stream.
std::span<const Scheduler> Schedulers();

// A schedule with its simulated time.
struct SimulatedSchedule {
  std::string_view scheduler;
  std::vector<Stream> streams;
  double makespan_ns = 0;
};

// Returns the schedules of all schedulers on at most problem.streams streams, without those on one
// stream and those that another one equals, the earliest simulated end first; of equal ends the
// first scheduler's. Empty: each scheduler uses one stream.
std::vector<SimulatedSchedule> SchedulesOf(const ScheduleProblem& problem);

// Returns the same of at most streams_min, streams_min + 1, ... problem.streams streams together;
// of equal ends the one on the fewest streams first. The numbers end with the first that no
// scheduler uses up: more streams are of no use then. REQUIRES: StreamCores(spec, n) is the same
// for all n.
std::vector<SimulatedSchedule> SchedulesOf(ScheduleProblem problem, int streams_min);

}  // namespace ag
