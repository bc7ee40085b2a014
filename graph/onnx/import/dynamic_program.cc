#include "graph/onnx/import/dynamic_program.h"

#include <algorithm>

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

StatusOr<ValueId> AddValue(const ModelValue& value, Importer& importer) {
  if (value.kind == OnnxKind::kTensor) return importer.AddTensor(value.tensor);
  std::vector<ValueId> items;
  for (const ModelValue& item : value.items) {
    AG_LET(const ValueId id, AddValue(item, importer));
    items.push_back(id);
  }
  return importer.AddItems(value.kind, std::move(items));
}

// Returns a value with all that is in it. REQUIRES: the importer computes all nodes.
ModelValue ValueOf(ValueId id, const Importer& importer) {
  const OnnxKind kind = importer.kind(id);
  if (kind == OnnxKind::kTensor) return *importer.known(id);
  std::vector<ModelValue> items;
  for (const ValueId item : importer.items(id)) items.push_back(ValueOf(item, importer));
  return {kind, std::move(items)};
}

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
  for (const DynamicPart::Input& input : part.inputs) {
    AG_LET(const ValueForm form, ParseForm(input.proto));
    program.input_forms_.push_back(form);
  }
  for (const auto& [name, proto] : part.outputs) {
    AG_LET(const ValueForm form, ParseForm(proto));
    if (form.kind == OnnxKind::kOther) {
      return Err(StatusCode::kUnimplemented, "output {} is {}", Quoted(name), KindName(form.kind));
    }
    program.outputs_.push_back({name, form});
  }
  return program;
}

StatusOr<std::vector<ModelValue>> DynamicProgram::Run(
    const std::map<std::string, ModelValue>& values, const RunOptions& run) const {
  RefusingSink sink;
  ImportOptions options;
  options.limits.nodes_max = run.nodes_max;
  Importer importer(options, *origin_, sink);
  importer.ComputeAll(run.threads, run.memory);
  importer.SetFunctions(functions_);
  const auto define = [&](const std::string& name, const ModelValue& given) -> Status {
    AG_LET(const ValueId value, AddValue(given, importer));
    return importer.Define(name, value);
  };
  for (const auto& [name, value] : values) AG_TRY(define(name, value));
  for (size_t i = 0; i < weights_.size(); ++i) {
    AG_LET(const ValueId value,
           importer.AddLasting({weights_[i].second, LastingValues::OfWeight(i)}));
    AG_TRY(importer.Define(weights_[i].first, value));
  }
  for (size_t i = 0; i < nodes_.size(); ++i) {
    AG_TRY(ImportNode(nodes_[i], i, importer));
  }
  std::vector<ModelValue> outputs;
  for (const Output& output : outputs_) {
    const ValueId value = importer.Find(output.name);
    if (value == kNoValue) {
      return Err(StatusCode::kInvalidArgument, "output {} is never computed", Quoted(output.name));
    }
    outputs.push_back(ValueOf(value, importer));
  }
  return outputs;
}

std::map<std::string, ModelValue> NamedValues(const Graph& graph, std::span<const Tensor> inputs,
                                              std::span<const Tensor> outputs) {
  std::map<std::string, ModelValue> values;
  for (size_t i = 0; i < outputs.size(); ++i) values[graph.outputs()[i].name] = outputs[i];
  for (size_t i = 0; i < inputs.size(); ++i) values[graph.input_name(i)] = inputs[i];
  return values;
}

std::vector<size_t> GraphInputs(const std::vector<DynamicPart::Input>& others, size_t count) {
  std::vector<size_t> positions;
  for (size_t i = 0; i < count; ++i) {
    const bool is_other = std::ranges::any_of(others, [i](const DynamicPart::Input& other) {
      return other.position == static_cast<int64_t>(i);
    });
    if (!is_other) positions.push_back(i);
  }
  return positions;
}

StatusOr<std::vector<ModelValue>> EvaluateModel(const Graph& graph, const OnnxOrigin& origin,
                                                const std::vector<ModelValue>& inputs,
                                                const WeightSource& weights, int threads) {
  const DynamicPart& part = origin.dynamic;
  std::vector<Tensor> tensors;
  for (const size_t i : GraphInputs(part.inputs, inputs.size())) {
    tensors.push_back(inputs[i].tensor);
  }
  if (tensors.size() + part.inputs.size() != inputs.size()) {
    return Err(StatusCode::kInvalidArgument, "expected {} inputs, got {}",
               graph.inputs().size() + part.inputs.size(), inputs.size());
  }
  AG_LET(const std::vector<Tensor> outputs,
         Evaluate(graph, tensors, weights, {.threads = threads}));
  if (part.empty()) return std::vector<ModelValue>(outputs.begin(), outputs.end());
  AG_LET(const DynamicProgram program, DynamicProgram::Of(origin, weights));
  std::map<std::string, ModelValue> values = NamedValues(graph, tensors, outputs);
  for (const DynamicPart::Input& input : part.inputs) {
    values[input.name] = inputs[static_cast<size_t>(input.position)];
  }
  return program.Run(values, {.threads = threads});
}

}  // namespace ag
