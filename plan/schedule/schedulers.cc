#include "plan/schedule/schedulers.h"

#include <algorithm>
#include <utility>

#include "plan/schedule/chain_cover.h"
#include "plan/schedule/device_shares.h"
#include "plan/schedule/greedy_streams.h"
#include "plan/schedule/interleaved_launches.h"
#include "plan/schedule/makespan.h"
#include "plan/schedule/schedule.h"
#include "plan/schedule/staged_endings.h"

namespace ag {
namespace {

constexpr Scheduler kSchedulers[] = {
    {"one stream", [](const ScheduleProblem& p) { return OneStream(p.graph, p.groups); }},
    {"greedy", GreedyStreams},
    {"device shares", DeviceShares},
    {"chain cover", ChainCover},
    {"interleaved", InterleavedLaunches},
    {"staged endings", StagedEndings},
};

}  // namespace

std::span<const Scheduler> Schedulers() { return kSchedulers; }

std::vector<SimulatedSchedule> SchedulesOf(const ScheduleProblem& problem) {
  return SchedulesOf(problem, problem.streams);
}

std::vector<SimulatedSchedule> SchedulesOf(ScheduleProblem problem, int streams_min) {
  std::vector<SimulatedSchedule> all;
  const int streams_max = problem.streams;
  problem.memory_bound.resize(problem.groups.size());
  for (const int g : problem.order) problem.memory_bound[g] = IsMemoryBound(problem, g);
  bool are_used_up = true;
  for (int streams = streams_min; streams <= streams_max && are_used_up; ++streams) {
    problem.streams = streams;
    are_used_up = false;
    for (const Scheduler& scheduler : Schedulers()) {
      SimulatedSchedule made{scheduler.name, scheduler.schedule(problem)};
      if (static_cast<int>(made.streams.size()) >= streams) are_used_up = true;
      const bool is_known = std::ranges::any_of(
          all, [&](const SimulatedSchedule& other) { return made.streams == other.streams; });
      if (made.streams.size() < 2 || is_known) continue;
      made.makespan_ns = MakespanNs(problem, made.streams);
      all.push_back(std::move(made));
    }
  }
  std::ranges::stable_sort(all, {}, &SimulatedSchedule::makespan_ns);
  return all;
}

}  // namespace ag
