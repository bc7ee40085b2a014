#include "device/api/device.h"

namespace ag {

StatusOr<double> MeanNs(int runs, const std::function<StatusOr<Nanos>()>& run) {
  double total = 0;
  for (int i = 0; i < runs; ++i) {
    AG_LET(const Nanos time, run());
    if (time.count() <= 0) {
      return Err(StatusCode::kDataLoss, "sample of {} ns: expected more than 0", time.count());
    }
    total += static_cast<double>(time.count());
  }
  return total / runs;
}

std::vector<Tensor> EmptyOutputs(const Graph& graph) {
  std::vector<Tensor> outputs;
  for (const GraphOutput& output : graph.outputs()) {
    outputs.push_back(Tensor::Zeros(graph.type(output.edge)));
  }
  return outputs;
}

RunTypes::RunTypes(const Graph& graph) {
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    inputs_.push_back({graph.input_name(i), graph.node(graph.inputs()[i]).outputs[0]});
  }
  for (const GraphOutput& output : graph.outputs()) {
    outputs_.push_back({output.name, graph.type(output.edge)});
  }
}

Status RunTypes::Check(std::span<const Tensor> inputs, std::span<Tensor> outputs) const {
  if (inputs.size() != inputs_.size() || outputs.size() != outputs_.size()) {
    return Err(StatusCode::kInvalidArgument,
               "run: expected {} inputs and {} outputs, got {} and {}", inputs_.size(),
               outputs_.size(), inputs.size(), outputs.size());
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].type() == inputs_[i].type) continue;
    return Err(StatusCode::kInvalidArgument, "run: input \"{}\": expected {}, got {}",
               inputs_[i].name, inputs_[i].type.ToString(), inputs[i].type().ToString());
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].type() == outputs_[i].type) continue;
    return Err(StatusCode::kInvalidArgument, "run: output \"{}\": expected {}, got {}",
               outputs_[i].name, outputs_[i].type.ToString(), outputs[i].type().ToString());
  }
  return OkStatus();
}

}  // namespace ag
