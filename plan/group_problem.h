// A group cut out of its graph, complete in itself: what is measured, and what the cache remembers.
// Two places with equal problems share one measurement.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"

namespace ag {

struct GroupProblem {
  // Inputs are the group's ports in order ("i0", "i1", ...), outputs the group's outputs ("o0",
  // ...). A reorder is a graph whose output is its input. Constants, and recipes over constants,
  // are one synthetic constant each, named by position and type. Only small ones whose value is
  // part of what is computed keep it: scalars, operands of element-wise operators, indices of a
  // gather.
  Graph graph;
  std::string pattern;
  std::vector<Layout> input_layouts;
  std::vector<Layout> output_layouts;
  int cores = 0;
  std::string precision = "fp32";
  bool cold_cache = false;  // Timed with the device's caches flushed before every run.
};

// REQUIRES: `group` is a group of `graph`, with all its ports.
GroupProblem ExtractGroup(const Graph& graph, const Group& group, const Policy& policy);

// The name of the constant that stands for a group's `position`-th one, when its values do not
// matter.
Digest SyntheticConstant(int position, const TensorType& type);

// For people: "conv: Conv Relu f32[1,64,56,56]".
std::string Summary(const GroupProblem& problem);

// kDataLoss: the layouts do not belong to the graph's inputs and outputs, as in what was read from
// elsewhere.
Status CheckGroupProblem(const GroupProblem& problem);

// Equal problems have equal bytes; hostile bytes give kDataLoss or kInvalidArgument, never a crash.
// Version 1 is warm, version 2 the same fields of a cold problem: whatever else a problem may be
// asked to be, those that are not keep their bytes, and so their keys.
std::string EncodeGroupProblem(const GroupProblem& problem);
StatusOr<GroupProblem> DecodeGroupProblem(std::string_view bytes);

// The key of a measurement: SHA-256 over the problem's bytes and the environment. A hit compares
// the bytes as well.
Digest GroupKey(std::string_view problem_bytes, const Environment& environment);

// A plan of one stream and one group over problem.graph: how a group is built and timed. Its inputs
// and outputs lie in the caller's buffers in the problem's layouts (see Place), so that nothing but
// the group runs. Passes ValidatePlan.
Plan SingleGroupPlan(const GroupProblem& problem);

// Work of the problem, for estimates: operations (multiply and add are two) and bytes moved once.
struct Work {
  double flops = 0;
  double bytes = 0;  // Inputs, constants and outputs, padding included.
};
Work WorkOf(const GroupProblem& problem);
double FlopsOf(
    const Graph& graph);  // Of one run; what is computed from constants alone is not in it.

}  // namespace ag
