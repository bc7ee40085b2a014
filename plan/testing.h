// Helpers for tests of this room and of those that follow it: specs from deploy/, groups, plans.
#pragma once

#include <string>
#include <vector>

#include "plan/schedule.h"

namespace ag {

// deploy/devices/<name>.spec under `source_dir`, which tests have as AG_SOURCE_DIR. Stops on
// errors.
DeviceSpec LoadSpec(const std::string& source_dir, const std::string& name);

#ifdef AG_SOURCE_DIR
// deploy/devices/small.spec: 4 cores, an event takes 10 ns.
inline const DeviceSpec& SmallSpec() {
  static const DeviceSpec spec = LoadSpec(AG_SOURCE_DIR, "small");
  return spec;
}
#endif

// The graph of a text form. Stops on errors.
Graph GraphOf(std::string_view text);

// "conv Conv+Relu", "view Concat", "reorder", ... one per group, in order.
std::vector<std::string> Summary(const Graph& graph, const std::vector<Group>& groups);

}  // namespace ag
