#include "runtime/whole_model.h"

namespace ag {

WholeModel::WholeModel(std::unique_ptr<Executable> planned, DynamicProgram program,
                       const Graph& graph, const Device& device)
    : planned_(std::move(planned)), program_(std::move(program)), graph_(graph), device_(device) {}

std::vector<Tensor> WholeModel::OfGraph(std::span<const Tensor> inputs) const {
  std::vector<Tensor> tensors;
  for (const size_t i : GraphInputs(program_.inputs(), inputs.size())) tensors.push_back(inputs[i]);
  return tensors;
}

StatusOr<Nanos> WholeModel::Run(std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  if (!outputs.empty()) {
    return Err(StatusCode::kFailedPrecondition,
               "the sizes of the model's outputs are known after a run: it gives them itself");
  }
  const std::vector<Tensor> of_graph = OfGraph(inputs);
  std::vector<Tensor> values = EmptyOutputs(graph_);
  AG_LET(const Nanos planned, planned_->Run(of_graph, values));
  const Nanos begin = RealClock().Now();
  std::map<std::string, ModelValue> named = NamedValues(graph_, of_graph, values);
  for (const DynamicPart::Input& input : program_.inputs()) {
    named[input.name] = inputs[static_cast<size_t>(input.position)];
  }
  AG_LET(std::vector<ModelValue> results, program_.Run(named, {.threads = device_.spec().cores}));
  results_.clear();
  for (ModelValue& result : results) results_.push_back(std::move(result.tensor));
  return planned + (RealClock().Now() - begin);
}

StatusOr<double> WholeModel::Time(const TimeRequest& request) {
  if (request.caches != Caches::kAsLeft || request.trace != nullptr) {
    return Err(StatusCode::kUnimplemented,
               "a model of which nodes run one by one has no trace and no cold caches");
  }
  if (device_.simulated()) {
    std::vector<Tensor> values = EmptyOutputs(graph_);
    const std::vector<Tensor> of_graph = OfGraph(request.inputs);
    return planned_->Time({of_graph, values, request.runs});
  }
  return MeanNs(request.runs, [&] { return Run(request.inputs, request.outputs); });
}

}  // namespace ag
