#include "graph/onnx/import/dynamic_program.h"

#include "graph/onnx/import/importer.h"
#include "graph/reference/evaluate.h"

namespace ag {
namespace {

// Nothing is put into the graph of an importer that computes all nodes.
class RefusingSink : public WeightSink {
 public:
  StatusOr<Digest> Put(std::string_view) override {
    return Err(StatusCode::kInternal, "a value was stored while nodes run one by one");
  }
};

}  // namespace

StatusOr<DynamicProgram> DynamicProgram::Of(const OnnxOrigin& origin, const WeightSource& weights) {
  DynamicProgram program;
  program.origin_ = std::make_shared<const OnnxOrigin>(origin);
  const DynamicPart& part = program.origin_->dynamic;
  for (const std::string& bytes : part.functions) {
    AG_LET(OnnxFunction function, ParseFunction(bytes));
    program.functions_.push_back(std::move(function));
  }
  RefusingSink sink;
  const ImportOptions options;
  Importer importer(options, *program.origin_, sink);
  importer.SetFunctions(program.functions_);
  for (const std::string& bytes : part.nodes) {
    AG_LET(OnnxNode node, ParseNode(bytes));
    if (!CanCompute(node, importer)) {
      return Err(StatusCode::kUnimplemented, "{}: no kernel here runs it",
                 NodeNoun(node, program.nodes_.size()));
    }
    program.nodes_.push_back(std::move(node));
  }
  for (const DynamicPart::Weight& weight : part.weights) {
    AG_LET(Tensor tensor, ConstantOf(weights, weight.digest, weight.type));
    program.weights_.emplace_back(weight.name, std::move(tensor));
  }
  for (const auto& [name, proto] : part.outputs) {
    AG_LET(const OnnxValueInfo info, ParseValueInfo(proto));
    const StatusOr<DType> dtype = DTypeFromOnnx(info.data_type);
    program.outputs_.emplace_back(name, dtype.ok() ? *dtype : DType::kFloat32);
  }
  return program;
}

StatusOr<std::vector<Tensor>> DynamicProgram::Run(const std::map<std::string, Tensor>& values,
                                                  const RunOptions& run) const {
  RefusingSink sink;
  ImportOptions options;
  options.limits.nodes_max = run.nodes_max;
  Importer importer(options, *origin_, sink);
  importer.ComputeAll(run.threads);
  importer.SetFunctions(functions_);
  const auto define = [&](const std::string& name, const Tensor& tensor) -> Status {
    AG_LET(const ValueId value, importer.AddTensor(tensor));
    return importer.Define(name, value);
  };
  for (const auto& [name, tensor] : values) AG_TRY(define(name, tensor));
  for (const auto& [name, tensor] : weights_) AG_TRY(define(name, tensor));
  for (size_t i = 0; i < nodes_.size(); ++i) {
    AG_TRY(ImportNode(nodes_[i], NodeNoun(nodes_[i], i), importer));
  }
  std::vector<Tensor> outputs;
  for (const auto& [name, dtype] : outputs_) {
    const ValueId value = importer.Find(name);
    const Tensor* tensor = value == kNoValue ? nullptr : importer.known(value);
    if (tensor == nullptr) {
      return Err(StatusCode::kInvalidArgument, "output {} is never computed", Quoted(name));
    }
    outputs.push_back(*tensor);
  }
  return outputs;
}

std::map<std::string, Tensor> NamedValues(const Graph& graph, std::span<const Tensor> inputs,
                                          std::span<const Tensor> outputs) {
  std::map<std::string, Tensor> values;
  for (size_t i = 0; i < outputs.size(); ++i) values[graph.outputs()[i].name] = outputs[i];
  for (size_t i = 0; i < inputs.size(); ++i) values[graph.input_name(i)] = inputs[i];
  return values;
}

StatusOr<std::vector<Tensor>> EvaluateModel(const Graph& graph, const OnnxOrigin& origin,
                                            const std::vector<Tensor>& inputs,
                                            const WeightSource& weights, int threads) {
  AG_LET(std::vector<Tensor> outputs, Evaluate(graph, inputs, weights, {.threads = threads}));
  if (origin.dynamic.empty()) return outputs;
  AG_LET(const DynamicProgram program, DynamicProgram::Of(origin, weights));
  return program.Run(NamedValues(graph, inputs, outputs), {.threads = threads});
}

}  // namespace ag
