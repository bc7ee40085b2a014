// A group as a graph of its own: the unit that is measured and cached. Two groups with equal
// problems share one measurement. Plain data and pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"

namespace ag {

struct GroupProblem {
  // Inputs are the group's ports in order ("i0", "i1", ...), outputs its outputs ("o0", ...). A
  // reorder is a graph whose output is its input. Each constant, or recipe over constants, is one
  // synthetic constant named by position and type. Only a small constant whose value matters to the
  // computation keeps its value: a scalar, an operand of an element-wise operator, the indices of a
  // gather.
  Graph graph;
  std::string pattern;
  std::vector<Layout> input_layouts;
  std::vector<Layout> output_layouts;
  int cores = 0;
  std::string precision = "fp32";
  bool cold_cache = false;  // The device's caches are evicted before every timed run.
};

// Returns the problem. REQUIRES: `group` is a group of `graph`, with all its ports.
GroupProblem ExtractGroup(const Graph& graph, const Group& group, const Policy& policy);

// Returns the name of the constant at `position` in a group whose values do not matter.
Digest SyntheticConstant(int position, const TensorType& type);

// Returns a text for people: "conv: Conv Relu f32[1,64,56,56]".
std::string Summary(const GroupProblem& problem);

// Returns kDataLoss when the layouts do not fit the graph's inputs and outputs. For problems that
// come from outside.
Status CheckGroupProblem(const GroupProblem& problem);

// Encode and decode a problem; equal problems have equal bytes. Hostile bytes give kDataLoss or
// kInvalidArgument, never a crash. Version 1 is a warm problem; version 2 has the same fields and
// is cold. Warm problems keep version 1, so that their stored keys stay valid.
std::string EncodeGroupProblem(const GroupProblem& problem);
StatusOr<GroupProblem> DecodeGroupProblem(std::string_view bytes);

// Returns the key of a measurement: SHA-256 over the problem's bytes and the environment. A cache
// compares the bytes on a hit as well.
Digest GroupKey(std::string_view problem_bytes, const Environment& environment);

// Returns a plan with one stream and one group over problem.graph, for building and timing the
// group. Its inputs and outputs are in the caller's buffers in the problem's layouts (see Place),
// so that only the group runs. Passes ValidatePlan.
Plan SingleGroupPlan(const GroupProblem& problem);

// The work of a problem, for estimates: operations (a multiply and an add are two), and bytes, each
// moved once.
struct Work {
  double flops = 0;
  double bytes = 0;  // Inputs, constants and outputs, with padding.
};
Work WorkOf(const GroupProblem& problem);
// Returns the operations of one run, without those on constants alone.
double FlopsOf(const Graph& graph);
// Returns the operations of one of the graph's nodes.
double FlopsOf(const Graph& graph, const Node& node);

}  // namespace ag
