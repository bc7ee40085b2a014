// How groups that run beside each other share a device's cores (SMs of a GPU), and what pairs of
// groups that were timed together say of it. Pure functions.
//
// The model has one number for a device, `overlap`, from 0 to 2. Groups that run beside each other
// have one speed, as a part of what each has alone:
//   overlap 0   1 / running                     one after the other: nothing is gained
//   overlap 1   min(1, cores / cores wanted)    each core serves one group, all are used: the spec
//   overlap 2   1                               they do not notice each other
// and between these in proportion. 1 where no pair has been timed.
#pragma once

#include <span>
#include <vector>

#include "plan/plan.h"

namespace ag {

inline constexpr double kOverlapMax = 2;

// What is known of a plan's groups beside their times.
struct Sharing {
  std::vector<int> busy_cores;  // Measurement::busy_cores by group; empty: of none.
  double overlap = 1;

  int BusyCores(int group) const { return busy_cores.empty() ? 0 : busy_cores[group]; }
};

// How many cores the group takes on a stream with `stream_cores` (0: all): `busy_cores` where that
// is known, else CoresTaken of its own cores or the stream's.
int ShareOf(const Graph& graph, const Group& group, int stream_cores, int busy_cores,
            const DeviceSpec& spec);

// The speed of each of `running` groups that together want `wanted` of the device's `cores`; 1 for
// one or none. REQUIRES: 0 <= overlap <= kOverlapMax.
double SpeedBeside(int running, double wanted, int cores, double overlap);

// Two groups alone and started together.
struct PairTime {
  double ns[2] = {0, 0};  // Alone.
  int cores[2] = {0, 0};  // Of ShareOf.
  double together_ns = 0;
};

// What the model says of together_ns, by the rest of `pair`.
double TogetherNs(const PairTime& pair, int cores, double overlap);

// The overlap, of the multiples of 0.01, by which the model misses the measured pairs least: by the
// sum of |model - measured| / measured, so that one bad measurement does not count. The nearest to
// 1 of equally good ones; 1 without pairs.
double FitOverlap(std::span<const PairTime> pairs, int cores);

}  // namespace ag
