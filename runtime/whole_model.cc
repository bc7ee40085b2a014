#include "runtime/whole_model.h"

#include "plan/schedule/planner.h"

namespace ag {
namespace {

// kUnimplemented: the device runs the kept operator on its reference kernel too.
Status CheckFaster(const Graph& graph, const Plan& plan, Device& device) {
  for (const Group& group : plan.groups) {
    AG_LET(const std::vector<std::string> kernels,
           device.Kernels(ExtractGroup(graph, group, Policy())));
    if (kernels.front() != "reference") continue;
    return Err(StatusCode::kUnimplemented, "{} runs on its reference kernel", device.spec().name);
  }
  return OkStatus();
}

// Returns what makes single operators ready on the device, with plans by estimate.
MakeReady ReadyOn(Device& device) {
  if (device.simulated()) return {};
  return [&device](const Graph& graph, const WeightSource& weights) -> StatusOr<RunGraph> {
    RooflineTimes times(device.spec());
    AG_LET(const Plan plan, MakePlan(graph, device.spec(), Policy(), times, {}, 1));
    AG_TRY(CheckFaster(graph, plan, device));
    AG_LET(std::shared_ptr<Executable> executable, device.Build({graph, plan, weights}));
    return [executable](std::span<const Tensor> inputs, std::span<Tensor> outputs) {
      return executable->Run(inputs, outputs).status();
    };
  };
}

}  // namespace

WholeModel::WholeModel(std::unique_ptr<Executable> planned, DynamicProgram program,
                       const Graph& graph, Device& device)
    : planned_(std::move(planned)),
      program_(std::move(program)),
      graph_(graph),
      device_(device),
      memory_{.values = {}, .operators = ReadyOperators(ReadyOn(device))} {}

std::vector<ModelValue> WholeModel::Values(std::span<const Tensor> inputs) const {
  std::vector<ModelValue> values(inputs.begin(), inputs.end());
  for (size_t i = 0; i < program_.inputs().size(); ++i) {
    const ValueForm& form = program_.input_forms()[i];
    ModelValue& value = values[static_cast<size_t>(program_.inputs()[i].position)];
    const size_t count = form.holds_sequence ? 2 : 1;
    value = MakeValue(form, std::vector<Tensor>(count, value.tensor));
  }
  return values;
}

std::vector<Tensor> WholeModel::OfGraph(std::span<const ModelValue> inputs) const {
  std::vector<Tensor> tensors;
  for (const size_t i : GraphInputs(program_.inputs(), inputs.size())) {
    tensors.push_back(inputs[i].tensor);
  }
  return tensors;
}

StatusOr<Nanos> WholeModel::Run(std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  if (!outputs.empty()) {
    return Err(StatusCode::kFailedPrecondition,
               "the sizes of the model's outputs are known after a run: it gives them itself");
  }
  return RunValues(Values(inputs));
}

StatusOr<Nanos> WholeModel::RunValues(std::span<const ModelValue> inputs) {
  const std::vector<Tensor> of_graph = OfGraph(inputs);
  std::vector<Tensor> values = EmptyOutputs(graph_);
  AG_LET(const Nanos planned, planned_->Run(of_graph, values));
  const Nanos begin = RealClock().Now();
  std::map<std::string, ModelValue> named = NamedValues(graph_, of_graph, values);
  for (const DynamicPart::Input& input : program_.inputs()) {
    named[input.name] = inputs[static_cast<size_t>(input.position)];
  }
  AG_LET(results_, program_.Run(named, {.threads = device_.spec().cores, .memory = &memory_}));
  return planned + (RealClock().Now() - begin);
}

StatusOr<double> WholeModel::Time(const TimeRequest& request) {
  if (request.caches != Caches::kAsLeft || request.trace != nullptr) {
    return Err(StatusCode::kUnimplemented,
               "a model of which nodes run one by one has no trace and no cold caches");
  }
  if (device_.simulated()) {
    std::vector<Tensor> values = EmptyOutputs(graph_);
    const std::vector<Tensor> of_graph = OfGraph(Values(request.inputs));
    return planned_->Time({of_graph, values, request.runs});
  }
  return MeanNs(request.runs, [&] { return Run(request.inputs, request.outputs); });
}

}  // namespace ag
