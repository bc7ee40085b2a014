// Imports one node: by its own importer, by the operator table, or unchanged as an opaque node.
#include <algorithm>

#include "absl/cleanup/cleanup.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_join.h"
#include "base/text.h"
#include "graph/onnx/import/node_import.h"
#include "graph/onnx/imported_model.h"
#include "graph/onnx/node_attributes.h"
#include "graph/onnx/operators/operators.h"
#include "graph/onnx/origin.h"

namespace ag {
namespace {

// Larger operands are not set to zeros to learn a type.
constexpr int64_t kZerosBytesMax = int64_t{64} << 20;

// Why an operator without a form of ours has no kernel either.
std::string_view WhyNotKnown(const OnnxNode& node) {
  const std::string_view why = WhyLeftOut(node);
  return why.empty() ? "the operator is not known" : why;
}

using ImporterTable = absl::flat_hash_map<std::string_view, const NodeImporterRow*>;

const ImporterTable& SpecialImporters() {
  static const auto& table = *new ImporterTable([] {
    ImporterTable result;
    for (const auto rows :
         {ShapeImporters(), ArithmeticImporters(), WindowImporters(), EinsumImporters(),
          ResizeImporters(), NormImporters(), ConstantImporters(), ControlImporters(),
          SequenceImporters(), MicrosoftImporters()}) {
      for (const NodeImporterRow& row : rows) AG_CHECK(result.emplace(row.name, &row).second);
    }
    return result;
  }());
  return table;
}

const absl::flat_hash_map<std::string_view, OpKind>& PlainOperators() {
  static const auto& table = *new absl::flat_hash_map<std::string_view, OpKind>([] {
    absl::flat_hash_map<std::string_view, OpKind> result;
    for (const OpInfo& info : AllOps()) {
      if (!info.onnx_name.empty()) result.emplace(info.onnx_name, info.kind);
    }
    return result;
  }());
  return table;
}

// How an operator is imported natively: by an importer of its own, or by the table. Neither: it is
// not.
struct NativeForm {
  const NodeImporterRow* row = nullptr;
  std::optional<OpKind> op = std::nullopt;
};

NativeForm NativeFormOf(const OnnxNode& node) {
  const bool is_standard = node.domain.empty();
  const auto special = SpecialImporters().find(
      is_standard ? node.op_type : fmt::format("{}.{}", node.domain, node.op_type));
  if (special != SpecialImporters().end()) return {.row = special->second};
  const auto plain = PlainOperators().find(node.op_type);
  if (is_standard && plain != PlainOperators().end()) return {.op = plain->second};
  return {};
}

Status ReadAttribute(const AttributeSchema& schema, NodeImport& node, Attributes& attributes) {
  if (!node.HasAttribute(schema.name)) {
    if (schema.default_value.has_value()) return OkStatus();
    return Err(StatusCode::kInvalidArgument, "attribute \"{}\" is missing", schema.name);
  }
  switch (schema.kind) {
    case 'i':
      attributes.Set(schema.name, node.Int(schema.name, 0));
      break;
    case 'f':
      attributes.Set(schema.name, node.Float(schema.name, 0));
      break;
    case 's':
      attributes.Set(schema.name, node.String(schema.name, ""));
      break;
    default:
      attributes.Set(schema.name, node.IntList(schema.name).value_or(Ints{}));
      break;
  }
  return OkStatus();
}

// Returns operand 1 as today's broadcasting wants it. Before opset 7 an attribute said with which
// axis of operand 0 its first one goes.
StatusOr<ValueId> AlignedOperand(NodeImport& node) {
  const ValueId operand = node.In(1);
  const int64_t rank = node.Rank(node.In(0)), own = node.Rank(operand);
  const bool is_slope = node.node().op_type == "PRelu";  // One for each channel.
  const bool broadcast = is_slope ? own == 1 && rank > 1 : node.Int("broadcast", 0) != 0;
  const int64_t axis = node.Int("axis", is_slope && broadcast ? 1 : rank - own);
  if (!broadcast || axis == rank - own || own == 0) return operand;
  AG_LET(const int64_t first, ResolveAxis(axis, rank));
  if (first + own > rank) {
    return Err(StatusCode::kInvalidArgument, "{} does not go with axis {} of {}",
               node.Type(operand).ToString(), first, node.Type(node.In(0)).ToString());
  }
  Shape shape = node.ShapeOf(operand);
  shape.resize(static_cast<size_t>(rank - first), 1);
  return node.Reshape(operand, shape);
}

// Imports an operator that ONNX has with the same attributes; an axis may count from the end.
Status ImportPlain(OpKind op, NodeImport& node) {
  const OpInfo& info = Info(op);
  const size_t high = info.arity_max < 0 ? node.size() : static_cast<size_t>(info.arity_max);
  AG_TRY(node.CheckInputs(std::max<size_t>(info.arity_min, info.arity_max < 0 ? node.size() : 0),
                          high));
  AG_TRY(node.OnlyFirstOutput());
  Attributes attributes;
  for (const AttributeSchema& schema : info.attributes) {
    AG_TRY(ReadAttribute(schema, node, attributes));
  }
  if (attributes.Find("axis") != nullptr) {
    AG_LET(const int64_t axis, ResolveAxis(attributes.Int("axis"), node.Rank(node.In(0))));
    attributes.Set("axis", axis);
  }
  std::vector<ValueId> operands = node.inputs();
  if (node.opset() < 7 && (Has(op, kBinary) || op == OpKind::kPrelu)) {
    AG_LET(operands[1], AlignedOperand(node));
  }
  AG_LET(const std::vector<ValueId> values, node.EmitAll(op, operands, std::move(attributes)));
  return node.Out(values[0]);
}

// Whether the node calculates with integers of 8 or 16 bits, or without a sign, which wrap around
// in ordinary models: rules hold only for integers that do not.
bool WrapsAround(const NodeImport& node) {
  static constexpr std::string_view kNames[] = {"Add",
                                                "Sub",
                                                "Mul",
                                                "Div",
                                                "Neg",
                                                "Abs",
                                                "Pow",
                                                "Mod",
                                                "Sum",
                                                "ReduceSum",
                                                "ReduceSumSquare",
                                                "ReduceL1"};
  if (!node.Has(0) || std::ranges::count(kNames, node.node().op_type) == 0) return false;
  const DType dtype = node.Type(node.In(0)).dtype;
  return IsInteger(dtype) && dtype != DType::kInt64 && dtype != DType::kInt32;
}

// Refuses sequences and optionals: what takes them says so in its row.
Status CheckKinds(const OnnxNode& node, const Importer& importer) {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId value = node.inputs[i].empty() ? kNoValue : importer.Find(node.inputs[i]);
    if (value == kNoValue || importer.kind(value) == OnnxKind::kTensor) continue;
    return Err(StatusCode::kInvalidArgument, "input {} is {}, the operator takes tensors", i,
               KindName(importer.kind(value)));
  }
  return OkStatus();
}

StatusOr<std::vector<ValueId>> ImportNatively(const OnnxNode& node, int64_t opset,
                                              Importer& importer) {
  NodeImport context(node, opset, importer);
  if (opset < 6) context.Ignore("consumed_inputs");  // A hint about memory.
  if (opset < 7) context.Ignore("is_test");          // Inference is meant.
  const NativeForm form = NativeFormOf(node);
  if (form.row == nullptr || !form.row->takes_any_kind) AG_TRY(CheckKinds(node, importer));
  if (WrapsAround(context)) {
    return Err(StatusCode::kUnimplemented, "integers that wrap around are not supported");
  }
  if (form.row != nullptr) {
    AG_TRY(context.CheckInputs(form.row->inputs_min, form.row->inputs_max));
    AG_TRY(form.row->run(context));
  } else if (form.op.has_value()) {
    AG_TRY(ImportPlain(*form.op, context));
  } else {
    return Err(StatusCode::kUnimplemented, "{}", WhyNotKnown(node));
  }
  AG_TRY(context.CheckAttributes());
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (context.Wants(i) && context.results()[i] == kNoValue) {
      return Err(StatusCode::kUnimplemented, "output {} is not supported", i);
    }
  }
  return context.results();
}

// Whether the operator gives other values each time, so that equal nodes have different values.
bool IsRandom(const OnnxNode& node) {
  static constexpr std::string_view kNames[] = {
      "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
      "Multinomial",  "Bernoulli",        "Dropout"};
  return std::ranges::count(kNames, node.op_type) > 0 && !HasOperator(node);
}

// Whether the node always makes the same of weights that are too large to be computed now.
bool IsRecipe(const OnnxNode& node, const std::vector<ValueId>& operands,
              const Importer& importer) {
  return !operands.empty() && HasOperator(node) && !IsRandom(node) &&
         std::ranges::all_of(operands, [&](ValueId value) { return importer.IsConstant(value); });
}

Status CheckSubgraphs(const OnnxNode& node, const ImportLimits& limits) {
  if (node.subgraph_depth > limits.subgraph_depth_max) {
    return Err(StatusCode::kResourceExhausted, "subgraphs are nested {} deep, the limit is {}",
               node.subgraph_depth, limits.subgraph_depth_max);
  }
  if (node.captures.empty()) return OkStatus();
  return Err(StatusCode::kUnimplemented, "its subgraph reads {} from outside",
             Quoted(node.captures[0]));
}

// Returns the types that the model states for the outputs of `node`.
StatusOr<std::vector<TensorType>> StatedTypes(const OnnxNode& node, const Importer& importer) {
  std::vector<TensorType> types;
  for (const std::string& name : node.outputs) {
    if (name.empty()) continue;
    const TensorType* type = importer.Stated(name);
    if (type == nullptr) {
      return Err(StatusCode::kUnimplemented,
                 "the model does not state the type of {} (as value_info)", Quoted(name));
    }
    types.push_back(*type);
  }
  return types;
}

// Runs the node's own kernel on its known operands, and on zeros for the others. The zeros tell the
// types of the results where their sizes do not depend on values.
StatusOr<std::vector<Tensor>> RunOnKnown(const OnnxNode& node, int64_t opset,
                                         const std::vector<ValueId>& inputs,
                                         const Importer& importer, bool types_only) {
  std::vector<Tensor> zeros(inputs.size());
  OperatorRun run = {.node = node,
                     .opset = opset,
                     .bytes_max = importer.limits().tensor_bytes_max,
                     .threads = importer.threads(),
                     .types_only = types_only};
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor* known = inputs[i] == kNoValue ? nullptr : importer.known(inputs[i]);
    if (inputs[i] != kNoValue && known == nullptr) {
      const TensorType& type = importer.type(inputs[i]);
      if (type.Bytes() > kZerosBytesMax || type.dtype == DType::kString) {
        return Err(StatusCode::kUnimplemented, "its output type is not stated");
      }
      zeros[i] = Tensor::Zeros(type);
      known = &zeros[i];
    }
    run.inputs.push_back(known);
  }
  return RunOperator(run);
}

// Returns the types by running the node's own kernel on zeros.
StatusOr<std::vector<TensorType>> TypesOfZeros(const OnnxNode& node, int64_t opset,
                                               const std::vector<ValueId>& inputs,
                                               const Importer& importer) {
  if (!HasOperator(node)) {
    return Err(StatusCode::kUnimplemented, "{}", WhyNotKnown(node));
  }
  std::vector<bool> known;
  for (const ValueId input : inputs) {
    known.push_back(input == kNoValue || importer.known(input) != nullptr);
  }
  if (SizesComeFromValues(node, known)) {
    return Err(StatusCode::kUnimplemented, "the size of its output depends on values");
  }
  AG_LET(const std::vector<Tensor> tensors,
         RunOnKnown(node, opset, inputs, importer, /*types_only=*/true));
  std::vector<TensorType> types;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!node.outputs[i].empty()) types.push_back(tensors[i].type());
  }
  return types;
}

// Whether the node is a pool with ceil_mode: ONNX's inference counts a last window that lies wholly
// in the padding behind the data, its text and ONNX Runtime do not.
bool IsCeilPool(const OnnxNode& node) {
  return node.op_type.ends_with("Pool") && NodeAttributes(node).Int("ceil_mode", 0) != 0;
}

StatusOr<std::vector<TensorType>> OpaqueTypes(const OnnxNode& node, int64_t opset,
                                              const std::vector<ValueId>& inputs,
                                              const Importer& importer) {
  std::vector<OperandInfo> operands;
  for (const ValueId input : inputs) {
    operands.push_back(input == kNoValue
                           ? OperandInfo{}
                           : OperandInfo{importer.type(input), importer.known(input)});
  }
  if (IsCeilPool(node) && HasOperator(node)) return TypesOfZeros(node, opset, inputs, importer);
  StatusOr<std::vector<TensorType>> inferred = InferOutputs(node, operands, importer.opsets());
  if (inferred.ok() || inferred.status().code() == StatusCode::kInvalidArgument) return inferred;
  StatusOr<std::vector<TensorType>> stated = StatedTypes(node, importer);
  if (stated.ok()) return stated;
  StatusOr<std::vector<TensorType>> of_zeros = TypesOfZeros(node, opset, inputs, importer);
  if (of_zeros.ok() || HasOperator(node)) return of_zeros;
  return IsStandard(node) ? inferred : stated;
}

bool AllKnown(const std::vector<ValueId>& inputs, const Importer& importer) {
  return std::ranges::all_of(
      inputs, [&](ValueId value) { return value == kNoValue || importer.known(value) != nullptr; });
}

// Runs the node on its operands, which are all known: on what a device made ready, or on the
// reference kernel.
StatusOr<std::vector<Tensor>> RunKnown(const OnnxNode& node, int64_t opset,
                                       const std::vector<ValueId>& inputs, Importer& importer) {
  const auto reference = [&] {
    return RunOnKnown(node, opset, inputs, importer, /*types_only=*/false);
  };
  std::vector<bool> lasting;
  std::vector<GivenOperand> operands;
  for (const ValueId input : inputs) {
    lasting.push_back(input == kNoValue || importer.lasting(input) != 0);
    if (input != kNoValue) operands.push_back({*importer.known(input), importer.lasting(input)});
  }
  if (importer.ready_operators() == nullptr || IsRandom(node) || node.subgraph_depth > 0 ||
      SizesComeFromValues(node, lasting)) {
    return reference();
  }
  const auto attributes = [&]() -> StatusOr<Attributes> {
    AG_LET(std::string proto, AnonymousNode(node, ""));
    return Attributes{{"onnx_node", std::move(proto)}, {"domain", node.domain}, {"opset", opset}};
  };
  const std::string form = fmt::format("{} {}", opset, node.proto);
  AG_LET(ReadyOperators::Results results,
         importer.ready_operators()->Run(
             {OpKind::kOpaque, form, operands, attributes},
             [&]() -> StatusOr<ReadyOperators::Results> { return reference(); }));
  return *std::move(results);
}

// Computes a node with a kernel of its own whose operands are all known. Returns nothing when it is
// not one, or its results are too large to be kept.
StatusOr<std::optional<std::vector<ValueId>>> ComputeOpaque(const OnnxNode& node, int64_t opset,
                                                            const std::vector<ValueId>& inputs,
                                                            Importer& importer) {
  if (!HasOperator(node) || !AllKnown(inputs, importer)) return std::nullopt;
  AG_LET(const std::vector<Tensor> tensors, RunKnown(node, opset, inputs, importer));
  std::vector<ValueId> results;
  for (size_t i = 0; i < tensors.size(); ++i) {
    results.push_back(kNoValue);
    if (node.outputs[i].empty()) continue;
    AG_LET(results.back(), importer.AddTensor(tensors[i]));
  }
  return results;
}

StatusOr<std::vector<ValueId>> ImportOpaque(const OnnxNode& node, int64_t opset,
                                            Importer& importer) {
  if (const Status kinds = CheckKinds(node, importer); !kinds.ok()) {
    return Err(StatusCode::kUnimplemented, "{}", Message(kinds));
  }
  AG_TRY(CheckSubgraphs(node, importer.limits()));
  std::vector<ValueId> operands, present;
  for (const std::string& name : node.inputs) {
    operands.push_back(name.empty() ? kNoValue : importer.Find(name));
    if (operands.back() != kNoValue) present.push_back(operands.back());
  }
  AG_LET(std::optional<std::vector<ValueId>> computed,
         ComputeOpaque(node, opset, operands, importer));
  if (computed.has_value()) return *std::move(computed);
  if (importer.computes_all()) return Err(StatusCode::kUnimplemented, "no kernel here runs it");
  if (node.subgraph_depth > 0 && CanCompute(node, importer)) {
    return Err(StatusCode::kUnimplemented, "its subgraph cannot be written out");
  }
  AG_LET(const std::vector<TensorType> types, OpaqueTypes(node, opset, operands, importer));
  const bool of_strings =
      std::ranges::any_of(present, [&](ValueId value) { return importer.IsString(value); }) ||
      std::ranges::count(types, DType::kString, &TensorType::dtype) > 0;
  if (of_strings && CanCompute(node, importer)) {
    return Err(StatusCode::kUnimplemented, "no plan works on strings");
  }
  AG_LET(std::string proto,
         AnonymousNode(node, IsRandom(node) ? absl::StrJoin(node.outputs, ",") : ""));
  Attributes attributes{{"onnx_node", std::move(proto)}, {"domain", node.domain}, {"opset", opset}};
  if (IsRecipe(node, present, importer)) attributes.Set("recipe", int64_t{1});
  AG_LET(const std::vector<ValueId> values,
         importer.AddOpaque(present, std::move(attributes), types));
  std::vector<ValueId> results;
  for (size_t i = 0, next = 0; i < node.outputs.size(); ++i) {
    results.push_back(node.outputs[i].empty() ? kNoValue : values[next++]);
  }
  return results;
}

// Whether an operand is not floating point: then the IR's kernels may lack the form. The sizes that
// a reshape reads are no such operand.
bool HasUnusualTypes(const OnnxNode& node, const Importer& importer) {
  const size_t count = node.op_type == "Reshape" ? 1 : node.inputs.size();
  const auto operands = std::span(node.inputs).first(std::min(count, node.inputs.size()));
  return std::ranges::any_of(operands, [&](const std::string& name) {
    const ValueId value = name.empty() ? kNoValue : importer.Find(name);
    return value != kNoValue && importer.kind(value) == OnnxKind::kTensor &&
           !IsFloat(importer.type(value).dtype);
  });
}

int64_t OpsetOf(const Importer::Opsets& opsets, const std::string& domain) {
  for (const auto& [name, version] : opsets) {
    if (name == domain) return version;
  }
  return 0;
}

// Writes a call of a model-local function out: its nodes stand in the place of the call.
StatusOr<std::vector<ValueId>> ImportCall(const OnnxFunction& function, const OnnxNode& node,
                                          Importer& importer) {
  AG_LET(const FunctionBody body, BodyOf(function, node));
  std::vector<ValueId> operands;
  for (const std::string& name : node.inputs) {
    operands.push_back(name.empty() ? kNoValue : importer.Find(name));
  }
  AG_LET(const std::vector<int> order, OrderNodes(body.nodes));
  AG_TRY(importer.Enter(&function.opsets));
  const absl::Cleanup leave = [&] { importer.Leave(); };
  for (size_t i = 0; i < std::min(operands.size(), function.inputs.size()); ++i) {
    if (operands[i] != kNoValue) AG_TRY(importer.Define(function.inputs[i], operands[i]));
  }
  AG_TRY(ImportNodes(body.nodes, order, importer));
  std::vector<ValueId> results;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    results.push_back(i < function.outputs.size() ? importer.Find(function.outputs[i]) : kNoValue);
    if (results.back() == kNoValue && !node.outputs[i].empty()) {
      return Err(StatusCode::kInvalidArgument, "function {} does not compute output {}",
                 Quoted(function.name), i);
    }
  }
  return results;
}

StatusOr<std::vector<ValueId>> ImportAny(const OnnxNode& node, Importer& importer) {
  if (const OnnxFunction* function = importer.FunctionOf(node); function != nullptr) {
    return ImportCall(*function, node, importer);
  }
  const int64_t opset = OpsetOf(importer.opsets(), node.domain);
  if (opset == 0) {
    return Err(StatusCode::kInvalidArgument, "the model imports no opset of domain {}",
               Quoted(node.domain));
  }
  // Operators of other domains are written with those of the default one.
  StatusOr<std::vector<ValueId>> results =
      ImportNatively(node, OpsetOf(importer.opsets(), ""), importer);
  if (results.ok()) return results;
  const Status native = results.status();
  const bool unsupported =
      native.code() == StatusCode::kUnimplemented ||
      (native.code() == StatusCode::kInvalidArgument && HasUnusualTypes(node, importer));
  if (!unsupported) return native;
  StatusOr<std::vector<ValueId>> kept = ImportOpaque(node, opset, importer);
  const std::string similar = CanCompute(node, importer) ? "" : SimilarOperator(node);
  if (kept.ok() && !similar.empty()) {
    importer.warnings.push_back(fmt::format("no operator of ONNX that is known here is called {}{}",
                                            Quoted(node.op_type), similar));
  }
  if (kept.ok() || kept.status().code() == StatusCode::kResourceExhausted) return kept;
  if (native.code() == StatusCode::kInvalidArgument) return native;
  if (HasOperator(node)) return kept;
  return Err(kept.status().code(), "{}, and it cannot be kept: {}{}", Message(native),
             Message(kept.status()), similar);
}

// Returns the numbers of the operands when all are the same in every run and the node makes the
// same of them.
std::optional<std::vector<int64_t>> LastingOperands(const OnnxNode& node,
                                                    const Importer& importer) {
  std::vector<int64_t> numbers;
  for (const std::string& name : node.inputs) {
    const ValueId value = name.empty() ? kNoValue : importer.Find(name);
    numbers.push_back(value == kNoValue ? 0 : importer.lasting(value));
    if (value != kNoValue && numbers.back() == 0) return std::nullopt;
  }
  if (node.subgraph_depth > 0 || IsRandom(node) || importer.FunctionOf(node) != nullptr) {
    return std::nullopt;
  }
  return numbers;
}

// Imports the node, or takes the results that an earlier run kept.
StatusOr<std::vector<ValueId>> ImportOrRecall(const OnnxNode& node, Importer& importer) {
  LastingValues* const lasting = importer.lasting_values();
  if (lasting == nullptr) return ImportAny(node, importer);
  const std::optional<std::vector<int64_t>> numbers = LastingOperands(node, importer);
  if (!numbers.has_value()) return ImportAny(node, importer);
  // A node is named by its place in the program, behind a byte that begins no operator's form.
  const char* const place = node.proto.data();
  std::string form(1, '\xff');
  form.append(reinterpret_cast<const char*>(&place), sizeof(place));
  std::vector<ValueId> values;
  if (const LastingValues::Values* kept = lasting->Find(form, *numbers); kept != nullptr) {
    for (const GivenOperand& value : *kept) {
      AG_LET(const ValueId id, importer.AddLasting(value));
      values.push_back(id);
    }
    return values;
  }
  AG_LET(values, ImportAny(node, importer));
  LastingValues::Values results;
  for (const ValueId value : values) {
    if (value != kNoValue && importer.known(value) == nullptr) return values;  // A sequence.
    results.push_back(value == kNoValue
                          ? GivenOperand()
                          : GivenOperand{*importer.known(value), importer.lasting(value)});
  }
  lasting->Keep(form, *numbers, results);
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] != kNoValue) importer.SetLasting(values[i], results[i].lasting);
  }
  return values;
}

}  // namespace

OperatorSupport SupportOf(const OnnxNode& node) {
  const NativeForm form = NativeFormOf(node);
  return {form.row != nullptr || form.op.has_value(), HasOperator(node)};
}

bool CanCompute(const OnnxNode& node, const Importer& importer) {
  const OperatorSupport support = SupportOf(node);
  return support.is_imported || support.has_kernel || importer.FunctionOf(node) != nullptr;
}

bool MayRunElsewhere(const OnnxNode& node, const Importer& importer) {
  return !node.domain.empty() || CanCompute(node, importer);
}

Status CheckOperator(const OnnxNode& node, const std::string& noun, const Importer& importer) {
  if (MayRunElsewhere(node, importer) || IsStandard(node)) return OkStatus();
  const StatusOr<std::vector<TensorType>> stated = StatedTypes(node, importer);
  if (stated.ok()) return OkStatus();
  return Err(StatusCode::kUnimplemented, "{}: {}, and it cannot be kept: {}{}", noun,
             WhyNotKnown(node), Message(stated.status()), SimilarOperator(node));
}

Status ImportNode(const OnnxNode& node, size_t index, Importer& importer) {
  const auto noun = [&] { return NodeNoun(node, index); };
  for (const std::string& name : node.inputs) {
    if (!name.empty() && importer.Find(name) == kNoValue) {
      return Err(StatusCode::kInvalidArgument, "{}: nothing defines its input {}", noun(),
                 Quoted(name));
    }
  }
  AG_TRY(importer.CountNode());
  const bool wanted = std::any_of(node.outputs.begin(), node.outputs.end(),
                                  [](const std::string& name) { return !name.empty(); });
  if (!wanted) return OkStatus();
  const int first = importer.size();
  const StatusOr<std::vector<ValueId>> results = ImportOrRecall(node, importer);
  if (!results.ok()) return Within(results.status(), noun());
  importer.NameNodes(first, node);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    AG_TRY(importer.Define(node.outputs[i], (*results)[i]), "{}", noun());
  }
  return OkStatus();
}

}  // namespace ag
