// What a scheduler is given, and the parts that schedulers share. Pure functions and plain data.
#pragma once

#include <cstdint>
#include <vector>

#include "base/index_set.h"
#include "plan/fusion/group_time.h"
#include "plan/plan.h"
#include "plan/schedule/contention_model.h"

namespace ag {

// The groups of a graph that one stream or several streams launch. The references must outlive it.
// Vectors by group; a view is in no list and takes no time.
struct ScheduleProblem {
  const Graph& graph;
  const std::vector<Group>& groups;
  const DeviceSpec& spec;
  Policy policy;
  int streams = 1;                            // The most that a schedule may use.
  std::vector<double> ns;                     // Each group alone, on the cores of one stream.
  std::vector<int> shares;                    // The cores that each group takes (ShareOf).
  double overlap = 1;                         // plan/schedule/contention_model.h
  std::vector<std::vector<int>> before = {};  // The groups that each one reads, ascending.
  std::vector<std::vector<int>> after = {};   // The groups that read each one, ascending.
  std::vector<int> order = {};  // The launched groups, each after those that it reads.
  // Whether memory bounds each group (IsMemoryBound), for who schedules more than once; else empty.
  std::vector<bool> memory_bound = {};
};

// Returns the problem of all groups. REQUIRES: streams >= 1, and one time for each group.
ScheduleProblem MakeScheduleProblem(const Graph& graph, const std::vector<Group>& groups,
                                    std::vector<double> group_ns, const DeviceSpec& spec,
                                    const Policy& policy, int streams,
                                    const Contention& contention = {});

// Return the times of groups as a problem and the simulation take them.
std::vector<double> NsOf(const std::vector<GroupTime>& times);
Contention ContentionOf(const std::vector<GroupTime>& times, double overlap);

// Returns by group the time of the longest path from its begin to the end of all, without events.
// `ns`: the times of the groups instead of problem.ns.
std::vector<double> RemainingNs(const ScheduleProblem& problem, const std::vector<double>& ns);
inline std::vector<double> RemainingNs(const ScheduleProblem& problem) {
  return RemainingNs(problem, problem.ns);
}

// A launched group in the order of list scheduling.
struct ListStep {
  int group = 0;
  bool is_alone = false;  // No other group has all its predecessors in the list then.
};
// Returns the launched groups in the order of list scheduling: of those whose predecessors are in
// the list, the one with the greatest priority comes next; of equal ones the first group.
std::vector<ListStep> ListOrder(const ScheduleProblem& problem,
                                const std::vector<double>& priority);

// Returns by group all groups that end before it begins in every schedule.
std::vector<IndexSet> AncestorsOf(const ScheduleProblem& problem);

// A part of the launched groups.
struct ScheduleBlock {
  std::vector<int> groups;  // In launch order.
  bool is_cut = false;      // One group, which every other one is before or after.
};
// Returns all launched groups in launch order, in blocks: every group that all others are before or
// after is one, and so is what lies between two of these. Schedules of blocks one after the other
// lose nothing: a cut ends before what follows begins.
std::vector<ScheduleBlock> BlocksOf(const ScheduleProblem& problem);

// Builds streams launch by launch and leaves out each wait that follows from the order of streams
// and from other waits. Launches are added in one order for all streams, so streams cannot wait for
// each other in a cycle.
class StreamsBuilder {
 public:
  StreamsBuilder(size_t groups, int streams);

  // Adds `group` to the end of a stream. REQUIRES: its predecessors were added before.
  void Launch(int group, int stream, std::vector<int> predecessors);

  int StreamOf(int group) const { return stream_of_[group]; }  // -1: not launched yet.
  const std::vector<Stream>& streams() const { return streams_; }

  // Returns the streams with launches, each of `cores` cores when there are several and else of
  // all; at least one, which may be empty.
  std::vector<Stream> Take(int cores);

 private:
  uint64_t* EndedBefore(int group) { return &ended_[static_cast<size_t>(group) * ended_words_]; }

  std::vector<Stream> streams_;
  std::vector<int> stream_of_;
  std::vector<int> position_;  // In the order of launches.
  // The groups that have ended when a group begins: for each group ended_words_ words of one bit
  // for each other one.
  const size_t ended_words_;
  std::vector<uint64_t> ended_;
  int launched_ = 0;
};

}  // namespace ag
