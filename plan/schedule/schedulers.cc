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
  std::vector<SimulatedSchedule> all;
  for (const Scheduler& scheduler : Schedulers()) {
    SimulatedSchedule made{scheduler.name, scheduler.schedule(problem)};
    const bool is_known = std::ranges::any_of(
        all, [&](const SimulatedSchedule& other) { return made.streams == other.streams; });
    if (made.streams.size() < 2 || is_known) continue;
    made.makespan_ns = MakespanNs(problem, made.streams);
    all.push_back(std::move(made));
  }
  std::ranges::stable_sort(all, {}, &SimulatedSchedule::makespan_ns);
  return all;
}

}  // namespace ag
