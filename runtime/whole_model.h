// A model with a dynamic part as one executable: the plan of its graph, then the nodes that run one
// by one (graph/onnx/import/dynamic_program.h), those that cost enough as plans of their own on the
// device. What times models times both. One thread at a time.
#pragma once

#include <memory>
#include <vector>

#include "device/api/device.h"
#include "graph/onnx/import/dynamic_program.h"

namespace ag {

class WholeModel : public Executable {
 public:
  // REQUIRES: `graph`, which `planned` runs, and `device` outlive this.
  WholeModel(std::unique_ptr<Executable> planned, DynamicProgram program, const Graph& graph,
             Device& device);

  // Takes the inputs of the whole model, in its order; TakeResults() has the outputs. Returns the
  // device's time plus that of the nodes behind the plan.
  StatusOr<Nanos> RunValues(std::span<const ModelValue> inputs);
  // Does the same with a tensor for each input: a sequence has it twice. Takes no output tensors,
  // since their sizes are known after the run.
  StatusOr<Nanos> Run(std::span<const Tensor> inputs, std::span<Tensor> outputs) override;
  // On a simulated device the estimate is the graph's alone. kUnimplemented: a trace, or caches in
  // another state than left.
  StatusOr<double> Time(const TimeRequest& request) override;

  // The outputs of the last run, in the model's order.
  std::vector<ModelValue> TakeResults() { return std::move(results_); }

 private:
  std::vector<ModelValue> Values(std::span<const Tensor> inputs) const;
  std::vector<Tensor> OfGraph(std::span<const ModelValue> inputs) const;

  std::unique_ptr<Executable> planned_;
  DynamicProgram program_;
  const Graph& graph_;
  const Device& device_;
  RunMemory memory_;
  std::vector<ModelValue> results_;
};

}  // namespace ag
