// Two groups that are timed together, started at once on two streams. Stored, sent and keyed like a
// GroupProblem; the first bytes distinguish the two kinds. Plain data and pure functions.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "plan/fusion/group_problem.h"

namespace ag {

// Both groups have operators (no reorders), they have one precision, and both are cold or both
// warm.
struct PairProblem {
  std::array<GroupProblem, 2> groups;
  std::array<std::string, 2> kernels;  // Their kernels: the fastest when alone.
};

// Returns kDataLoss when the pair breaks these rules. For pairs that come from outside.
Status CheckPairProblem(const PairProblem& pair);

// Returns the pair in canonical order, by the bytes of group and kernel: (a, b) and (b, a) are
// equal.
PairProblem MakePair(PairProblem pair);

// Returns the bytes of the pair; equal pairs have equal bytes.
std::string EncodePairProblem(const PairProblem& pair);
bool IsPairProblem(std::string_view bytes);  // True: DecodePairProblem decodes it.
// Returns the pair. Hostile bytes give kDataLoss or kInvalidArgument, never a crash.
StatusOr<PairProblem> DecodePairProblem(std::string_view bytes);

// Returns a text for people: "dense: MatMul f32[4,4] beside chain: Relu f32[4]".
std::string Summary(const PairProblem& pair);

// One graph that holds both groups, which share nothing, and a plan that runs them on two streams.
// Inputs and outputs of the first group come first. Synthetic constants of the second have other
// names.
struct PairRun {
  Graph graph;
  Plan plan;
};
// Returns the run of a pair. kInvalidArgument: the groups do not form a graph.
StatusOr<PairRun> PlanOfPair(const PairProblem& pair);

}  // namespace ag
