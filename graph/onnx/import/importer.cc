#include "graph/onnx/import/importer.h"

#include <algorithm>
#include <functional>

#include "graph/codec.h"
#include "graph/onnx/fields.h"
#include "graph/onnx/import/moved.h"
#include "graph/onnx/imported_model.h"
#include "graph/onnx/operators/string_ranks.h"
#include "graph/reference/evaluate.h"

namespace ag {
namespace {

// Shape chains are tiny; masks and position tables of attention have some KB.
constexpr int64_t kKnownBytesMax = 64 << 10;

// Values in all sequences that one import makes: 256 MiB of their numbers. Every insertion makes a
// sequence anew.
constexpr int64_t kItemsMax = int64_t{1} << 26;

// Comments and metadata of all nodes together: exporters write a trace of some KB for each.
constexpr size_t kNotesBytesMax = size_t{32} << 20;

using Results = std::optional<std::vector<Tensor>>;

// Returns the results of one operator, or nothing when one has more than `bytes_max`.
StatusOr<Results> EvaluateOne(OpKind op, const std::vector<Tensor>& operands,
                              const Attributes& attributes, int64_t bytes_max, int threads) {
  GraphBuilder builder;
  std::vector<Edge> edges;
  for (const Tensor& operand : operands) {
    edges.push_back(builder.Input(fmt::format("{}", edges.size()), operand.type()));
  }
  AG_LET(const NodeId node, builder.Add(op, edges, attributes));
  const size_t count = builder.node(node).outputs.size();
  for (size_t i = 0; i < count; ++i) {
    const Edge edge{node, static_cast<int32_t>(i)};
    if (builder.type(edge).Bytes() > bytes_max) return std::nullopt;
    builder.Output(edge, fmt::format("{}", i));
  }
  std::optional<Tensor> moved;
  if (operands.size() == 1) moved = Moved(builder.node(node), operands[0]);
  if (moved.has_value()) return std::vector<Tensor>{*std::move(moved)};
  AG_LET(const Graph graph, builder.Build());
  AG_LET(std::vector<Tensor> tensors,
         Evaluate(graph, operands, MemoryWeights(), {.threads = threads}));
  return tensors;
}

// Returns equal bytes for equal operators.
std::string FormOf(OpKind op, const Attributes& attributes) {
  ByteWriter form;
  form.U8(static_cast<uint8_t>(op));
  WriteAttributes(attributes, &form);
  return form.Take();
}

// Computes an operator that only moves or compares elements: on the ranks of strings, which it puts
// into `operands`.
StatusOr<Results> OnStrings(OpKind op, std::vector<Tensor>& operands,
                            const std::function<StatusOr<Results>()>& compute) {
  if (!Has(op, kMovement) && op != OpKind::kWhere && op != OpKind::kEqual) {
    return Err(StatusCode::kInvalidArgument, "{}: cannot compute on strings", Info(op).text_name);
  }
  for (size_t i = 0; i < operands.size(); ++i) {
    // The condition of a choice and the indices of a gather are numbers.
    const bool is_number = (op == OpKind::kWhere && i == 0) || (op == OpKind::kGather && i == 1);
    if ((operands[i].type().dtype == DType::kString) != is_number) continue;
    return Err(StatusCode::kInvalidArgument, "strings are mixed with numbers");
  }
  const std::vector<Tensor> given = operands;
  std::vector<const Tensor*> pointers;
  for (const Tensor& operand : given) pointers.push_back(&operand);
  const onnx_operators::StringRanks ranks(pointers);
  for (Tensor& operand : operands) {
    if (operand.type().dtype == DType::kString) operand = ranks.RanksOf(operand);
  }
  AG_LET(Results results, compute());
  if (!results.has_value() || op == OpKind::kEqual) return results;
  for (Tensor& tensor : *results) {
    AG_LET(tensor, ranks.StringsOf(tensor));
  }
  return results;
}

}  // namespace

Importer::Importer(const ImportOptions& options, const OnnxOrigin& origin, WeightSink& sink)
    : options_(options), origin_(origin), sink_(sink), known_bytes_max_(kKnownBytesMax) {
  scopes_.push_back({.is_function = true, .opsets = &origin_.opsets});
}

void Importer::ComputeAll(int threads, RunMemory* memory) {
  known_bytes_max_ = options_.limits.tensor_bytes_max;
  threads_ = std::max(threads, 1);
  memory_ = memory;
}

LastingValues* Importer::lasting_values() {
  const bool in_function =
      std::any_of(scopes_.begin() + 1, scopes_.end(), [](const Scope& s) { return s.is_function; });
  return memory_ == nullptr || in_function ? nullptr : &memory_->values;
}

StatusOr<ValueId> Importer::AddLasting(const GivenOperand& value) {
  return Add({.type = value.tensor.type(), .tensor = value.tensor, .lasting = value.lasting});
}

void Importer::ForgetOthers(ValueId first, std::span<std::vector<ValueId>* const> listed) {
  std::vector<ValueId> kept;
  const auto keep = [&](const std::vector<ValueId>& ids) {
    std::ranges::copy_if(ids, std::back_inserter(kept), [&](ValueId id) { return id >= first; });
  };
  for (const std::vector<ValueId>* ids : listed) keep(*ids);
  for (size_t i = 0; i < kept.size(); ++i) keep(values_[kept[i]].items);
  std::ranges::sort(kept);
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  const auto rename = [&](std::vector<ValueId>& ids) {
    for (ValueId& id : ids) {
      if (id < first) continue;
      id = first + static_cast<ValueId>(std::ranges::lower_bound(kept, id) - kept.begin());
    }
  };
  for (std::vector<ValueId>* ids : listed) rename(*ids);
  for (size_t i = 0; i < kept.size(); ++i) {
    Value& value = values_[first + static_cast<ValueId>(i)];
    if (kept[i] != first + static_cast<ValueId>(i)) std::swap(value, values_[kept[i]]);
    rename(value.items);
  }
  for (auto id = static_cast<size_t>(first) + kept.size(); id < values_.size(); ++id) {
    total_bytes_ -= BytesOf(values_[id]);
  }
  values_.erase(values_.begin() + first + static_cast<ptrdiff_t>(kept.size()), values_.end());
}

int64_t Importer::BytesOf(const Value& value) {
  return value.tensor.has_value() ? static_cast<int64_t>(value.tensor->bytes().size())
                                  : value.type.Bytes();
}

Status Importer::Define(const std::string& name, ValueId value) {
  if (!scopes_.back().names.emplace(name, value).second) {
    return Err(StatusCode::kInvalidArgument, "tensor {} is defined twice", Quoted(name));
  }
  NameValue(name, value);
  return OkStatus();
}

ValueId Importer::Find(const std::string& name) const {
  for (size_t i = scopes_.size(); i-- > 0;) {
    const auto found = scopes_[i].names.find(name);
    if (found != scopes_[i].names.end()) return found->second;
    if (scopes_[i].is_function) break;
  }
  return kNoValue;
}

Status Importer::Enter(const Opsets* function_opsets) {
  const size_t limit = static_cast<size_t>(limits().subgraph_depth_max);
  if (scopes_.size() > limit) {
    return Err(StatusCode::kResourceExhausted,
               "subgraphs and functions are nested {} deep, the limit is {}", scopes_.size(),
               limit);
  }
  const bool is_function = function_opsets != nullptr;
  const auto is_open = [&](const Scope& scope) { return scope.opsets == function_opsets; };
  if (is_function && std::ranges::any_of(scopes_, is_open)) {
    return Err(StatusCode::kInvalidArgument, "the function calls itself, by others or directly");
  }
  const Opsets* opsets = is_function ? function_opsets : scopes_.back().opsets;
  scopes_.push_back({.is_function = is_function, .opsets = opsets});
  return OkStatus();
}

Status Importer::CountNode() {
  if (++nodes_ <= limits().nodes_max) return OkStatus();
  if (computes_all()) {
    return Err(StatusCode::kResourceExhausted,
               "{} nodes have run, those of subgraphs each time, and it has not ended: give the "
               "loop a count or a condition that ends",
               limits().nodes_max);
  }
  return Err(StatusCode::kResourceExhausted,
             "more than {} nodes, subgraphs and functions written out", limits().nodes_max);
}

const OnnxFunction* Importer::FunctionOf(const OnnxNode& node) const {
  const auto found = std::ranges::find_if(functions_, [&](const OnnxFunction& function) {
    return function.name == node.op_type && function.domain == node.domain;
  });
  return found == functions_.end() ? nullptr : &*found;
}

const Tensor* Importer::known(ValueId value) const {
  const Value& v = values_[value];
  if (!v.tensor.has_value()) return nullptr;
  const auto bytes = static_cast<int64_t>(v.tensor->bytes().size());
  return bytes <= known_bytes_max_ ? &*v.tensor : nullptr;
}

const Tensor* Importer::stored(ValueId value) const {
  const Value& v = values_[value];
  return v.tensor.has_value() ? &*v.tensor : nullptr;
}

const Digest* Importer::DigestOf(ValueId value) const {
  const Value& v = values_[value];
  if (v.edge.node < 0 || builder_.node(v.edge.node).op != OpKind::kConstant) return nullptr;
  return &builder_.node(v.edge.node).constant->digest;
}

bool Importer::IsConstant(ValueId value) const {
  const Value& v = values_[value];
  if (v.edge.node < 0) return v.tensor.has_value();
  const Node& node = builder_.node(v.edge.node);
  return node.op == OpKind::kConstant || (Has(node.op, kBarrier) && node.Int("recipe") != 0);
}

const TensorType* Importer::Stated(const std::string& name) const {
  if (scopes_.size() > 1 && scopes_.back().is_function) return nullptr;
  const auto found = stated_.find(name);
  return found == stated_.end() ? nullptr : &found->second;
}

StatusOr<ValueId> Importer::Add(Value value) {
  const ImportLimits& limits = options_.limits;
  const int64_t bytes = BytesOf(value);
  if (static_cast<int>(value.type.shape.size()) > limits.rank_max) {
    return Err(StatusCode::kResourceExhausted, "{} has rank {}, the limit is {}",
               value.type.ToString(), value.type.shape.size(), limits.rank_max);
  }
  if (bytes > limits.tensor_bytes_max) {
    return Err(StatusCode::kResourceExhausted, "{} has {} bytes, the limit is {} a tensor",
               value.type.ToString(), bytes, limits.tensor_bytes_max);
  }
  total_bytes_ += bytes;
  if (total_bytes_ > limits.total_bytes_max) {
    return Err(StatusCode::kResourceExhausted, "all tensors together pass the limit of {} bytes",
               limits.total_bytes_max);
  }
  values_.push_back(std::move(value));
  return static_cast<ValueId>(values_.size() - 1);
}

StatusOr<ValueId> Importer::AddInput(const std::string& name, const TensorType& type) {
  AG_LET(const ValueId value, Add({.type = type}));
  values_[value].edge = builder_.Input(name, type);
  return value;
}

StatusOr<ValueId> Importer::AddTensor(const Tensor& tensor) {
  return Add({.type = tensor.type(), .tensor = tensor});
}

StatusOr<ValueId> Importer::AddItems(OnnxKind kind, std::vector<ValueId> items) {
  total_items_ += static_cast<int64_t>(items.size());
  if (total_items_ > kItemsMax) {
    return Err(StatusCode::kResourceExhausted, "all sequences together hold more than {} tensors",
               kItemsMax);
  }
  return Add({.kind = kind, .items = std::move(items)});
}

bool Importer::FitsGraph(ValueId value) const {
  return kind(value) == OnnxKind::kTensor && !(IsString(value) && values_[value].edge.node < 0);
}

StatusOr<Edge> Importer::EdgeOf(ValueId value) {
  Value& v = values_[value];
  if (v.edge.node >= 0) return v.edge;
  AG_LET(const Digest digest, sink_.Put(v.tensor->bytes()));
  v.edge = builder_.Constant(v.type, digest, v.tensor->bytes());
  const auto name = names_of_stored_.find(value);
  if (name != names_of_stored_.end()) NamesOf(v.edge.node)->values = {name->second};
  if (known(value) == nullptr) v.tensor.reset();  // Frees bytes that only this import holds.
  return v.edge;
}

StatusOr<std::optional<std::vector<ValueId>>> Importer::Compute(OpKind op,
                                                                std::span<const ValueId> inputs,
                                                                const Attributes& attributes) {
  std::vector<Tensor> operands;
  for (const ValueId input : inputs) {
    const Tensor* tensor = known(input);
    if (tensor == nullptr) return std::nullopt;
    operands.push_back(*tensor);
  }
  const bool of_strings =
      std::ranges::any_of(inputs, [&](ValueId input) { return IsString(input); });
  const auto compute = [&] {
    return EvaluateOne(op, operands, attributes, known_bytes_max_, threads());
  };
  std::optional<std::vector<Tensor>> results;
  if (of_strings) {
    AG_LET(results, OnStrings(op, operands, compute));
  } else if (memory_ != nullptr) {
    return ComputeKept(op, inputs, attributes, compute);
  } else {
    AG_LET(results, compute());
  }
  if (!results.has_value()) return std::nullopt;
  std::vector<ValueId> values;
  for (const Tensor& tensor : *results) {
    AG_LET(const ValueId value, AddTensor(tensor));
    values.push_back(value);
  }
  return values;
}

StatusOr<std::optional<std::vector<ValueId>>> Importer::ComputeKept(
    OpKind op, std::span<const ValueId> inputs, const Attributes& attributes,
    const std::function<StatusOr<ReadyOperators::Results>()>& reference) {
  const std::string form = FormOf(op, attributes);
  std::vector<GivenOperand> operands;
  std::vector<int64_t> numbers;
  for (const ValueId input : inputs) {
    operands.push_back({*known(input), lasting(input)});
    numbers.push_back(lasting(input));
  }
  const bool is_lasting = std::ranges::count(numbers, 0) == 0;
  const LastingValues::Values* const kept =
      is_lasting ? memory_->values.Find(form, numbers) : nullptr;
  LastingValues::Values values;
  if (kept == nullptr) {
    AG_LET(const ReadyOperators::Results results,
           memory_->operators.Run({op, form, operands, [&] { return attributes; }}, reference));
    if (!results.has_value()) return std::nullopt;
    for (const Tensor& tensor : *results) values.push_back({tensor});
    if (is_lasting) memory_->values.Keep(form, numbers, values);
  }
  std::vector<ValueId> ids;
  for (const GivenOperand& value : kept == nullptr ? values : *kept) {
    AG_LET(const ValueId id, AddLasting(value));
    ids.push_back(id);
  }
  return ids;
}

// Finds a table that is too short already here, where other sizes of the inputs can still be tried.
Status Importer::CheckIndices(std::span<const ValueId> inputs, int64_t axis) const {
  const Tensor* const indices = known(inputs[1]);
  if (indices == nullptr) return OkStatus();
  const auto size = static_cast<double>(type(inputs[0]).shape[static_cast<size_t>(axis)]);
  for (const double index : indices->ToDoubles()) {
    if (index >= -size && index < size) continue;
    return Err(StatusCode::kOutOfRange, "index {} is outside [-{}, {})", index, size, size);
  }
  return OkStatus();
}

StatusOr<std::vector<ValueId>> Importer::AddNode(OpKind op, std::span<const ValueId> inputs,
                                                 Attributes attributes) {
  AG_LET(std::optional<std::vector<ValueId>> computed, Compute(op, inputs, attributes));
  if (computed.has_value()) return *std::move(computed);
  if (computes_all()) return Err(StatusCode::kResourceExhausted, "its result is too large");
  if (std::ranges::any_of(inputs, [&](ValueId input) { return IsString(input); })) {
    return Err(StatusCode::kUnimplemented, "no plan works on strings");
  }
  std::vector<Edge> edges;
  for (const ValueId input : inputs) {
    AG_LET(const Edge edge, EdgeOf(input));
    edges.push_back(edge);
  }
  // A node of many inputs stands for as many operators.
  if (++operators_ > limits().nodes_max) {
    return Err(StatusCode::kResourceExhausted, "the model stands for more than {} operators",
               limits().nodes_max);
  }
  AG_LET(const NodeId node, builder_.Add(op, edges, std::move(attributes)));
  if (op == OpKind::kGather) AG_TRY(CheckIndices(inputs, builder_.node(node).Int("axis")));
  std::vector<ValueId> values;
  const auto outputs = builder_.node(node).outputs;
  for (int32_t i = 0; i < static_cast<int32_t>(outputs.size()); ++i) {
    AG_LET(const ValueId value, Add({.type = outputs[i], .edge = {node, i}}));
    values.push_back(value);
  }
  return values;
}

StatusOr<std::vector<ValueId>> Importer::AddOpaque(std::span<const ValueId> inputs,
                                                   Attributes attributes,
                                                   std::span<const TensorType> outputs) {
  std::vector<Edge> edges;
  for (const ValueId input : inputs) {
    AG_LET(const Edge edge, EdgeOf(input));
    edges.push_back(edge);
  }
  const NodeId node = builder_.AddOpaque(edges, std::move(attributes), outputs);
  std::vector<ValueId> values;
  for (int32_t i = 0; i < static_cast<int32_t>(outputs.size()); ++i) {
    AG_LET(const ValueId value, Add({.type = outputs[i], .edge = {node, i}}));
    values.push_back(value);
  }
  return values;
}

bool IsKeptName(const std::string& name) {
  constexpr size_t kNameBytesMax = 512;
  return !name.empty() && name.size() <= kNameBytesMax &&
         std::ranges::all_of(name, [](char c) { return c >= 0x20 && c < 0x7f; });
}

NodeNames* Importer::NamesOf(NodeId id) {
  if (names_.size() <= static_cast<size_t>(id)) names_.resize(static_cast<size_t>(id) + 1);
  return &names_[static_cast<size_t>(id)];
}

void Importer::NameValue(const std::string& name, ValueId value) {
  if (computes_all() || scopes_.size() > 1 || !IsKeptName(name)) return;
  const Edge edge = values_[value].edge;
  if (edge.node < 0) {
    names_of_stored_.emplace(value, name);
    return;
  }
  auto& values = NamesOf(edge.node)->values;
  values.resize(builder_.node(edge.node).outputs.size());
  std::string& kept = values[static_cast<size_t>(edge.output)];
  if (kept.empty()) kept = name;
}

void Importer::NameNodes(int first, const OnnxNode& node) {
  if (computes_all() || scopes_.size() > 1 || first == builder_.size()) return;
  const uint32_t notes = AddNotes(node);
  const std::string name = IsKeptName(node.name) ? node.name : "";
  for (NodeId id = first; id < builder_.size(); ++id) {
    if (Has(builder_.node(id).op, kLeaf)) continue;
    NamesOf(id)->node = name;
    NamesOf(id)->notes = notes;
  }
}

uint32_t Importer::AddNotes(const OnnxNode& node) {
  StatusOr<std::string> notes = FieldsOf(node.proto, kNodeNotes);
  if (!notes.ok() || notes->empty()) return 0;
  notes_bytes_ += notes->size();
  if (notes_bytes_ > kNotesBytesMax) {
    const std::string warning = fmt::format(
        "comments and metadata of nodes beyond {} MiB are not kept", kNotesBytesMax >> 20);
    if (std::ranges::count(warnings, warning) == 0) warnings.push_back(warning);
    return 0;
  }
  notes_.push_back(*std::move(notes));
  return static_cast<uint32_t>(notes_.size());
}

StatusOr<Graph> Importer::Build(OnnxOrigin* origin) {
  std::vector<NodeId> place;
  AG_LET(Graph graph, builder_.Build(&place));
  origin->names.assign(static_cast<size_t>(graph.size()), {});
  for (size_t i = 0; i < names_.size(); ++i) {
    if (place[i] >= 0) origin->names[static_cast<size_t>(place[i])] = std::move(names_[i]);
  }
  origin->notes = std::move(notes_);
  return graph;
}

Status Importer::Output(ValueId value, const std::string& name) {
  AG_LET(const Edge edge, EdgeOf(value));
  builder_.Output(edge, name);
  has_outputs_ = true;
  return OkStatus();
}

std::vector<std::string> NamesRead(const OnnxNode& node) {
  std::vector<std::string> names = node.captures;
  std::ranges::copy_if(node.inputs, std::back_inserter(names),
                       [](const std::string& name) { return !name.empty(); });
  return names;
}

std::string NodeNoun(const OnnxNode& node, size_t index) {
  const std::string shown = node.name.empty() ? fmt::format("{}", index) : Quoted(node.name);
  return fmt::format("node {} ({})", shown, node.op_type.substr(0, 60));
}

}  // namespace ag
