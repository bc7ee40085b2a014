// Two groups that are timed together: each on a stream of its own, begun at once. Stored, sent and
// keyed like a GroupProblem, of which its bytes are told apart by how they begin.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "plan/group_problem.h"

namespace ag {

// Both groups have operators (they are no reorders), one precision, and both are cold or neither.
struct PairProblem {
  std::array<GroupProblem, 2> groups;
  std::array<std::string, 2> kernels;  // That they run: the fastest alone.
};

// kDataLoss: it is not, as in what was read from elsewhere.
Status CheckPairProblem(const PairProblem& pair);

// The pair in its one order: that of the bytes of group and kernel. So (a, b) and (b, a) are equal.
PairProblem MakePair(PairProblem pair);

// Equal pairs have equal bytes; hostile bytes give kDataLoss or kInvalidArgument, never a crash.
std::string EncodePairProblem(const PairProblem& pair);
bool IsPairProblem(std::string_view bytes);  // Whether DecodePairProblem is the one to ask.
StatusOr<PairProblem> DecodePairProblem(std::string_view bytes);

// For people: "dense: MatMul f32[4,4] beside chain: Relu f32[4]".
std::string Summary(const PairProblem& pair);

// Both groups in one graph that share nothing (inputs and outputs of the first, then of the second;
// synthetic constants of the second have other names), and a plan that runs them on two streams.
// kInvalidArgument: groups that do not make a graph.
struct PairRun {
  Graph graph;
  Plan plan;
};
StatusOr<PairRun> PlanOfPair(const PairProblem& pair);

}  // namespace ag
