// The simulated time of a walk on one cluster of a device with buffers: two lanes, the cores and
// the DMA from memory (GraphTurbo's instruction scheduling across layers, Zhao et al., OSDI 2023,
// section 5.3). Every time is an estimate from the rates of the spec. Pure functions.
#pragma once

#include <string>

#include "plan/instances/walk.h"

namespace ag {

struct TimelineOptions {
  // The weights of the next step are loaded behind the current one, as far as the global buffer has
  // room, and vector work runs beside matrix work where a core has several units. False: a step
  // loads its weights first, and its operators run one after the other.
  bool across_layers = true;
};

// Returns nanoseconds. A step takes the longest of its operations, its bytes in the global buffer,
// in the local ones, and in memory, and `launch_ns` of the spec. Clusters share the memory's rate
// evenly. REQUIRES: the spec has buffers and offers the precision.
double TimelineNs(const LayeredGraph& layered, const Walk& walk, const DeviceSpec& spec,
                  const TimelineOptions& options);

}  // namespace ag
