#include "device/cuda/launch/gpu_device.h"

#include <cmath>

#include "device/api/segments.h"
#include "device/cuda/launch/executable.h"
#include "graph/text_form.h"
#include "plan/format/plan_validate.h"
#include "plan/schedule/planner.h"

namespace ag::cuda {
namespace {

// Matrix products of 0.3 GFLOP between passes over memory, so that its time follows both clocks.
constexpr std::string_view kCanary =
    "input x f32[512,512]\n"
    "a = matmul(x, x)\n"
    "b = softmax(a) axis=1\n"
    "c = matmul(b, x)\n"
    "d = softmax(c) axis=1\n"
    "output d\n";

// The canary's executable and its data. Executables borrow their graph's device, not the graph.
struct CanaryRun {
  std::unique_ptr<Executable> executable;
  std::vector<Tensor> inputs, outputs;
};

class GpuDevice : public Device {
 public:
  explicit GpuDevice(GpuParts parts)
      : Device({.spec = parts.spec, .environment = parts.environment}),
        parts_(std::move(parts)),
        eviction_(*parts_.driver, spec().cache_bytes) {}

  StatusOr<std::vector<std::string>> Kernels(const GroupProblem& problem) override {
    const Plan plan = SingleGroupPlan(problem);
    AG_LET(const Precision precision, PrecisionOf(plan.policy));
    return parts_.sources->Kernels({problem.graph, plan.groups[0], precision, parts_.chip});
  }

  void Prepare(const GroupProblem& problem) override {
    const Plan plan = SingleGroupPlan(problem);
    const StatusOr<Precision> precision = PrecisionOf(plan.policy);
    if (!precision.ok()) return;  // Build reports it.
    parts_.sources->Prepare({problem.graph, plan.groups[0], *precision, parts_.chip});
  }

  StatusOr<std::unique_ptr<Executable>> Build(const BuildRequest& request) override {
    AG_TRY(ValidatePlan(request.graph, request.plan, spec()));
    if (request.plan.segments.size() > 1) {
      return Err(StatusCode::kUnimplemented,
                 "cuda: a plan in {} segments: tensors between them "
                 "would be copied through the host",
                 request.plan.segments.size());
    }
    if (!request.plan.segments.empty()) return BuildSegments(*this, request);
    AG_LET(
        std::unique_ptr<GpuExecutable> executable,
        MakeExecutable({*parts_.driver, *parts_.sources, eviction_, parts_.chip, spec()}, request));
    return std::unique_ptr<Executable>(std::move(executable));
  }

  StatusOr<Nanos> Canary() override {
    if (canary_.executable == nullptr) AG_TRY(MakeCanary(), "canary");
    // Not a run: its time has the host's part in it, which scatters, and moving the data takes
    // longer.
    AG_LET(const double ns, canary_.executable->Time({canary_.inputs, canary_.outputs}));
    return Nanos(std::llround(ns));
  }

 private:
  Status MakeCanary() {
    MemoryWeights weights;
    AG_LET(const Graph graph, ParseGraph(kCanary, &weights));
    RooflineTimes times(spec());
    AG_LET(const Plan plan, MakePlan(graph, spec(), {}, times, {}, 1));
    AG_LET(canary_.executable, Build({graph, plan, weights}));
    canary_.inputs = {RandomTensor(graph.type({graph.inputs()[0], 0}), 1)};
    canary_.outputs = {Tensor::Zeros(graph.type(graph.outputs()[0].edge))};
    return OkStatus();
  }

  GpuParts parts_;  // Outlives the members below.
  CacheEviction eviction_;
  CanaryRun canary_;
};

}  // namespace

std::unique_ptr<Device> MakeGpuDevice(GpuParts parts) {
  return std::make_unique<GpuDevice>(std::move(parts));
}

}  // namespace ag::cuda
