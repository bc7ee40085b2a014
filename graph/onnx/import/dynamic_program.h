// Runs the dynamic part of a model node by node: the importer with all values known (importer.h).
// Sizes come from the values of each run; an If takes its branch, a Loop ends when its condition
// says so. Operators run on the reference kernels, or where a device made them ready
// (ready_operators.h). Thread-safe once made.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/onnx/import/lasting_values.h"
#include "graph/onnx/imported_model.h"
#include "graph/onnx/wire.h"
#include "graph/tensor.h"
#include "graph/weights.h"

namespace ag {

class DynamicProgram {
 public:
  // Reads the part and its weights. kUnimplemented, with the node's name: no kernel here runs it;
  // with the output's: it is a map or the like.
  static StatusOr<DynamicProgram> Of(const OnnxOrigin& origin, const WeightSource& weights);

  // Returns the outputs of the whole model, in its order. `values`: its inputs and the outputs of
  // the graph, by name (NamedValues and those inputs that the graph lacks). The errors of the
  // nodes, with their names. kResourceExhausted: a tensor above the import's limits, or more nodes
  // than run.nodes_max.
  struct RunOptions {
    int threads = 1;
    int64_t nodes_max = 10'000'000;  // Those of subgraphs count each time they run.
    // What runs keep; null: nothing. One run at a time uses it, all of this program.
    RunMemory* memory = nullptr;
  };
  StatusOr<std::vector<ModelValue>> Run(const std::map<std::string, ModelValue>& values,
                                        const RunOptions& run) const;

  // The inputs that the graph lacks, and what they are. A tensor of strings has its type with them.
  const std::vector<DynamicPart::Input>& inputs() const { return origin_->dynamic.inputs; }
  const std::vector<ValueForm>& input_forms() const { return input_forms_; }
  // The model's outputs, in order, as the model states them.
  struct Output {
    std::string name;
    ValueForm form;
  };
  const std::vector<Output>& outputs() const { return outputs_; }

 private:
  // On the heap, so that the parsed nodes, which point into it, stay valid when this moves.
  std::shared_ptr<const OnnxOrigin> origin_;
  std::vector<OnnxNode> nodes_;
  std::vector<OnnxFunction> functions_;
  std::vector<std::pair<std::string, Tensor>> weights_;
  std::vector<ValueForm> input_forms_;
  std::vector<Output> outputs_;
};

// Returns the outputs of the whole model on the reference kernels: those of the graph, or with a
// dynamic part what it makes of them. `inputs` are the model's, in its order. Errors as of Evaluate
// and of DynamicProgram.
StatusOr<std::vector<ModelValue>> EvaluateModel(const Graph& graph, const OnnxOrigin& origin,
                                                const std::vector<ModelValue>& inputs,
                                                const WeightSource& weights, int threads = 1);

// Returns the values that a dynamic part reads: inputs and outputs of the graph, by name.
std::map<std::string, ModelValue> NamedValues(const Graph& graph, std::span<const Tensor> inputs,
                                              std::span<const Tensor> outputs);

// Which of a model's `count` inputs are inputs of its graph: their positions, in order.
std::vector<size_t> GraphInputs(const std::vector<DynamicPart::Input>& others, size_t count);

}  // namespace ag
