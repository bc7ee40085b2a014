// A model of how groups that run beside each other share a device's cores (SMs of a GPU), and its
// fit to measured pairs of groups. Pure functions.
//
// The model has one number for a device, `overlap`, from 0 to 2. Groups that run beside each other
// have one common speed, as a fraction of the speed of each alone:
//   overlap 0   1 / running                     one after the other: no gain
//   overlap 1   min(1, cores / cores wanted)    each core serves one group, all cores are used
//   overlap 2   1                               no group slows another one
// Values between are interpolated linearly. Without a measured pair, overlap is 1.
#pragma once

#include <span>
#include <vector>

#include "plan/plan.h"

namespace ag {

inline constexpr double kOverlapMax = 2;

// The facts about a plan's groups besides their times.
struct Contention {
  std::vector<int> active_cores;  // GroupTime::active_cores by group; empty: unknown for all.
  double overlap = 1;

  int ActiveCores(int group) const { return active_cores.empty() ? 0 : active_cores[group]; }
};

// Returns the cores that the group takes on a stream with `stream_cores` (0: all): `active_cores`
// when it is known, else CoresTaken of the group's own cores or the stream's.
int ShareOf(const Graph& graph, const Group& group, int stream_cores, int active_cores,
            const DeviceSpec& spec);

// Returns the speed of each of `running` groups that together want `wanted` of the device's
// `cores`; 1 when at most one runs. REQUIRES: 0 <= overlap <= kOverlapMax; both numbers of cores
// are positive where several run.
double SpeedUnderContention(int running, double wanted, int cores, double overlap);

// The times of two groups, alone and started together.
struct PairTime {
  double ns[2] = {0, 0};  // Alone.
  int cores[2] = {0, 0};  // From ShareOf.
  double together_ns = 0;
};

// Returns the model's prediction of together_ns.
double TogetherNs(const PairTime& pair, int cores, double overlap);

// Returns the multiple of 0.01 for which the model is nearest to the measured pairs: the least sum
// of |model - measured| / measured, on which one bad measurement has little effect. Of equally good
// values it returns the one nearest to 1; without pairs, 1.
double FitOverlap(std::span<const PairTime> pairs, int cores);

}  // namespace ag
