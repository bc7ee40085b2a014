// Checks of generated groups, for tests: generated, compiled for the host, run and compared with
// the reference kernels. Many groups are compiled in one text, because starting the compiler takes
// longer than a kernel. One thread at a time.
#pragma once

#include "device/cuda/codegen/generate.h"
#include "graph/weights.h"
#include "plan/fusion/group_problem.h"

namespace ag::cuda {

// One group by one variant, with its inputs and its expected outputs.
struct GroupCheck {
  std::string name;  // The begin of messages.
  Graph graph;
  Group group;
  Precision precision = Precision::kFp32;
  std::vector<Tensor> inputs;    // By input port; graph's types, plain.
  std::vector<Tensor> expected;  // By output port.
  std::shared_ptr<const WeightSource> weights;
  GeneratedGroup generated;
};

// Returns checks of the problem by every variant that the chip suggests, on random inputs and
// synthetic weights.
StatusOr<std::vector<GroupCheck>> ChecksOf(const std::string& name, const GroupProblem& problem,
                                           Precision precision, const Chip& chip = {});

// Returns the texts of several groups as one; "g<position>_" makes their names different.
std::string JoinSources(std::span<const GroupCheck> checks);

// Compiles all with the host's compiler, runs each and compares. Returns what is wrong with each,
// by its name. Memory that a kernel must not touch is not mapped, or is checked afterwards.
StatusOr<std::vector<std::string>> RunChecks(std::span<const GroupCheck> checks);

// Fails when the largest error of `actual` over the largest expected value exceeds the precision's
// tolerance, or when NaN, infinities or whole numbers differ.
Status CompareTensors(const Tensor& expected, const Tensor& actual, Precision precision);

}  // namespace ag::cuda
