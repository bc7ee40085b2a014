#include "runtime/whole_model.h"

namespace ag {

WholeModel::WholeModel(std::unique_ptr<Executable> planned, DynamicProgram program,
                       const Graph& graph, const Device& device)
    : planned_(std::move(planned)), program_(std::move(program)), graph_(graph), device_(device) {}

StatusOr<Nanos> WholeModel::Run(std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  if (!outputs.empty()) {
    return Err(StatusCode::kFailedPrecondition,
               "the sizes of the model's outputs are known after a run: it gives them itself");
  }
  std::vector<Tensor> values = EmptyOutputs(graph_);
  AG_LET(const Nanos planned, planned_->Run(inputs, values));
  const Nanos begin = RealClock().Now();
  AG_LET(results_,
         program_.Run(NamedValues(graph_, inputs, values), {.threads = device_.spec().cores}));
  return planned + (RealClock().Now() - begin);
}

StatusOr<double> WholeModel::Time(const TimeRequest& request) {
  if (request.caches != Caches::kAsLeft || request.trace != nullptr) {
    return Err(StatusCode::kUnimplemented,
               "a model of which nodes run one by one has no trace and no cold caches");
  }
  if (device_.simulated()) {
    std::vector<Tensor> values = EmptyOutputs(graph_);
    return planned_->Time({request.inputs, values, request.runs});
  }
  return MeanNs(request.runs, [&] { return Run(request.inputs, request.outputs); });
}

}  // namespace ag
