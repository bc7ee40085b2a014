// For tests: the groups that a device spec's patterns form of a graph in text form.
#pragma once

#include <string>
#include <vector>

#include "plan/group_problem.h"

namespace ag::cuda {

struct NamedProblem {
  std::string name;  // "conv Conv+Relu channels_last"
  GroupProblem problem;
};

// Of the grouped and the ungrouped plan under deploy/devices/h200.spec, without repeats.
// `all_layouts`: each in every layout that its pattern lists as well. `text` has "; " between
// statements.
StatusOr<std::vector<NamedProblem>> GroupsOfCase(const std::string& source_dir,
                                                 std::string_view text, bool all_layouts);

}  // namespace ag::cuda
