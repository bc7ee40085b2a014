// A model's plan with one kernel wherever it is offered, beside the same plan with others: what a
// kernel is worth between its neighbours, where a group timed alone only predicts it.
//   build/kernel_plans MODEL KERNEL KERNEL...     (MODEL: of the zoo, or FILE.onnx)
// The groups are those of a plan that measures nothing, on one stream; a group that does not have
// the kernel takes its first guess. The plans run in turn. Prints a line for each kernel: groups
// that have it, median, and the ratio to the first kernel's with its 95 % interval.
#include <algorithm>
#include <cstdio>

#include "bench/models/load_model.h"
#include "device/open_device.h"
#include "device/profile/profile.h"
#include "graph/inputs/make_inputs.h"
#include "plan/fusion/grouping.h"
#include "plan/interval.h"
#include "plan/schedule/planner.h"
#include "rules/match/rule_clean_up.h"
#include "rules/sets/built_in_rules.h"
#include "worker/execute.h"

namespace ag {
namespace {

constexpr int kRounds = 31;

struct Candidate {
  std::string kernel;
  int groups = 0;
  std::unique_ptr<Executable> executable;
  std::vector<double> ns;
};

StatusOr<Candidate> CandidateOf(const std::string& kernel, const LoadedModel& loaded,
                                const Graph& graph, Plan plan, Device& device) {
  Candidate candidate{kernel};
  for (Group& group : plan.groups) {
    if (group.pattern == kViewPattern) continue;
    const auto names = device.Kernels(ExtractGroup(graph, group, plan.policy));
    if (!names.ok() || std::ranges::count(*names, kernel) == 0) continue;
    group.kernel = kernel;
    ++candidate.groups;
  }
  AG_LET(candidate.executable, device.Build({graph, plan, *loaded.weights}));
  return candidate;
}

Status PrintKernels(const std::string& model, std::span<char*> kernels) {
  AG_LET(const std::unique_ptr<Device> device, OpenDevice("cpu"));
  AG_LET(const LoadedModel loaded, LoadModel(model));
  AG_LET(const Graph graph, CleanUp(loaded.graph, BuiltInRules()));
  AG_LET(const auto lock, MeasureAlone(*device));
  RooflineTimes times(device->spec());
  AG_LET(const Plan plan, MakePlan(graph, device->spec(), Policy(), times, {}, 1));
  std::vector<Candidate> candidates;
  for (const char* kernel : kernels) {
    AG_LET(Candidate candidate, CandidateOf(kernel, loaded, graph, plan, *device));
    candidates.push_back(std::move(candidate));
  }
  const std::vector<Tensor> inputs = UsualInputs(graph, 1);
  std::vector<Tensor> outputs = EmptyOutputs(graph);
  for (int round = -2; round < kRounds; ++round) {
    for (Candidate& candidate : candidates) {
      AG_LET(const double ns, candidate.executable->Time({inputs, outputs}));
      if (round >= 0) candidate.ns.push_back(ns);
    }
  }
  for (const Candidate& candidate : candidates) {
    std::vector<double> ratios;
    for (int i = 0; i < kRounds; ++i) ratios.push_back(candidate.ns[i] / candidates[0].ns[i]);
    const Latency ratio = MedianInterval(ratios, 0.95);
    std::printf("%-22s %3d groups %9.3f ms  %.3f (%.3f to %.3f)\n", candidate.kernel.c_str(),
                candidate.groups, Median(candidate.ns) / 1e6, ratio.median_ns, ratio.low_ns,
                ratio.high_ns);
  }
  return OkStatus();
}

}  // namespace
}  // namespace ag

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: kernel_plans MODEL KERNEL KERNEL...\n");
    return 2;
  }
  const ag::Status status = ag::PrintKernels(argv[1], {argv + 2, argv + argc});
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", ag::Message(status).c_str());
  return 1;
}
