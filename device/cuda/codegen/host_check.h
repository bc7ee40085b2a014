// For tests: groups generated, compiled for the host, run and compared with the reference kernels.
// Many groups are compiled in one text, because starting the compiler takes longer than a kernel.
#pragma once

#include <map>

#include "device/cuda/codegen/generate.h"
#include "graph/weights.h"
#include "plan/group_problem.h"

namespace ag::cuda {

// One group by one variant, with what it reads and what is expected of it.
struct GroupCheck {
  std::string name;  // What messages begin with.
  Graph graph;
  Group group;
  Precision precision = Precision::kFp32;
  std::vector<Tensor> inputs;    // By input port; graph's types, plain.
  std::vector<Tensor> expected;  // By output port.
  std::shared_ptr<const WeightSource> weights;
  GeneratedGroup generated;
};

// Checks of the problem by every variant that the chip suggests, on random inputs and synthetic
// weights.
StatusOr<std::vector<GroupCheck>> ChecksOf(const std::string& name, const GroupProblem& problem,
                                           Precision precision, const Chip& chip = {});

// The texts of several groups as one: names that they share are told apart by "g<position>_".
std::string JoinSources(std::span<const GroupCheck> checks);

// Compiles all with the host's compiler, runs each and compares; what is wrong with each, by its
// name. Memory that a kernel must not touch is not mapped or is looked at afterwards.
StatusOr<std::vector<std::string>> RunChecks(std::span<const GroupCheck> checks);

// The largest error of `actual` over the largest value expected, as a status where it exceeds what
// the precision allows, or where NaN, infinities or whole numbers differ.
Status CompareTensors(const Tensor& expected, const Tensor& actual, Precision precision);

}  // namespace ag::cuda
