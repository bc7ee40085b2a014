// Helpers for tests of this room and of rooms above it: specs from deploy/, groups, plans. One
// thread at a time.
#pragma once

#include <string>
#include <vector>

#include "plan/fusion/group_problem.h"
#include "plan/schedule/planner.h"

namespace ag {

// Returns the spec in deploy/devices/<name>.spec under `source_dir` (AG_SOURCE_DIR in tests). An
// error ends the program.
DeviceSpec LoadSpec(const std::string& source_dir, const std::string& name);

#ifdef AG_SOURCE_DIR
// Returns deploy/devices/small.spec: 4 cores; an event takes 10 ns.
inline const DeviceSpec& SmallSpec() {
  static const DeviceSpec spec = LoadSpec(AG_SOURCE_DIR, "small");
  return spec;
}
#endif

// Returns the graph of a text form. An error ends the program.
Graph GraphOf(std::string_view text);

// Returns the problem of a group "chain": one relu of x[size], in f32, plain.
GroupProblem ReluProblem(int64_t size);

// Returns "conv Conv+Relu", "view Concat", "reorder", ... for each group, in order.
std::vector<std::string> Summary(const Graph& graph, const std::vector<Group>& groups);

}  // namespace ag
