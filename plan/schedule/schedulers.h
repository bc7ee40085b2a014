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

// Returns the schedules on several streams of all schedulers, without those that another one
// equals, the earliest simulated end first; of equal ends the first scheduler's. Empty: each
// scheduler uses one stream.
std::vector<SimulatedSchedule> SchedulesOf(const ScheduleProblem& problem);

}  // namespace ag
