// The groups that a device spec's patterns form in a graph in text form, for tests. Thread-safe.
#pragma once

#include <string>
#include <vector>

#include "plan/fusion/group_problem.h"

namespace ag::cuda {

struct NamedProblem {
  std::string name;  // "conv Conv+Relu channels_last"
  GroupProblem problem;
};

// Returns the groups of the grouped and of the ungrouped plan under deploy/devices/h200.spec,
// without repeats. `all_layouts`: each also in every layout that its pattern lists. `text` has "; "
// between statements.
StatusOr<std::vector<NamedProblem>> GroupsOfCase(const std::string& source_dir,
                                                 std::string_view text, bool all_layouts);

}  // namespace ag::cuda
