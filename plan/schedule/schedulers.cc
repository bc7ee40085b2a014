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

bool AreEqual(const std::vector<Stream>& a, const std::vector<Stream>& b) {
  return std::ranges::equal(a, b, [](const Stream& s, const Stream& t) {
    return s.cores == t.cores &&
           std::ranges::equal(s.launches, t.launches, [](const Launch& l, const Launch& m) {
             return l.group == m.group && l.waits == m.waits;
           });
  });
}

}  // namespace

std::span<const Scheduler> Schedulers() { return kSchedulers; }

std::vector<SimulatedSchedule> SchedulesOf(const ScheduleProblem& problem) {
  std::vector<SimulatedSchedule> all;
  for (const Scheduler& scheduler : Schedulers()) {
    SimulatedSchedule made{scheduler.name, scheduler.schedule(problem)};
    const bool is_known = std::ranges::any_of(
        all, [&](const SimulatedSchedule& other) { return AreEqual(made.streams, other.streams); });
    if (made.streams.size() < 2 || is_known) continue;
    made.makespan_ns = MakespanNs(problem, made.streams);
    all.push_back(std::move(made));
  }
  std::ranges::stable_sort(all, {}, &SimulatedSchedule::makespan_ns);
  return all;
}

}  // namespace ag
