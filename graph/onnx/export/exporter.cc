#include "graph/onnx/export/exporter.h"

#include <algorithm>

#include "graph/onnx/origin.h"
#include "graph/reference/evaluate.h"

namespace ag {
namespace {

constexpr std::string_view kNodesKey = "autograph.nodes", kRulesKey = "autograph.rules";
constexpr size_t kTableBytesMax = 1 << 16;

// The oldest forms that are written; a model of an older opset is raised to these. Before IR
// version 4 every weight had to be an input as well.
constexpr int64_t kOpsetWrittenMin = 11, kIrVersionWrittenMin = 4;

}  // namespace

Exporter::Exporter(const Graph& graph, const OnnxOrigin& origin, const WeightSource& weights,
                   const ExportOptions& options, OpenSizes open)
    : graph_(graph),
      dynamic_(origin.dynamic),
      weights_(weights),
      kept_(graph, origin, options.imported),
      rules_(options.rules),
      annotations_(origin.annotations),
      annotation_weights_(origin.annotation_weights),
      open_(std::move(open)) {
  model_.origin = origin;
  model_.origin.names.clear();  // Read from the argument, and large.
  model_.origin.notes.clear();
  model_.origin.stated.clear();
  ReadStated(origin);
  given_opsets_ = origin.opsets;
  if (model_.origin.opsets.empty()) model_.origin.opsets = {{"", opset_}};
  for (auto& [domain, version] : model_.origin.opsets) {
    if (!domain.empty()) continue;
    version = std::max(version, kOpsetWrittenMin);
    opset_ = version;
  }
  model_.origin.ir_version = std::max(model_.origin.ir_version, kIrVersionWrittenMin);
  if (model_.origin.graph_name.empty()) model_.origin.graph_name = "graph";
}

std::string Exporter::Fresh(std::string_view stem) {
  while (true) {
    std::string name = fmt::format("{}_{}", stem, next_++);
    if (taken_.insert(name).second) return name;
  }
}

std::string Exporter::FreshNode(const std::string& name) {
  if (taken_nodes_.insert(name).second) return name;
  while (true) {
    std::string other = fmt::format("{}_{}", name, next_++);
    if (taken_nodes_.insert(other).second) return other;
  }
}

// Reserves the names that the user's model gives to what is still there, before any other is made.
void Exporter::KeepNames() {
  for (NodeId id = 0; id < graph_.size(); ++id) {
    if (graph_.node(id).op == OpKind::kInput) continue;
    for (int32_t i = 0; i < static_cast<int32_t>(graph_.node(id).outputs.size()); ++i) {
      const Edge edge{id, i};
      const std::string& name = kept_.ValueOf(edge);
      if (name.empty() || names_.contains(edge) || !taken_.insert(name).second) continue;
      (IsFolded(id) ? weights_names_ : names_)[edge] = name;
    }
  }
}

// Chooses the names of the nodes that the graph's node `id` becomes.
void Exporter::BeginNode(NodeId id) {
  stem_ = Info(graph_.node(id).op).text_name;
  node_name_ = kept_.NodeOf(id);
  notes_ = kept_.NotesOf(id);
  if (!node_name_.empty()) return;
  const std::vector<std::string> origins = kept_.OriginsOf(id);
  const bool has_rule = kept_.IsNew(id) && static_cast<size_t>(id) < rules_.size();
  const std::string rule = has_rule ? rules_[static_cast<size_t>(id)] : "";
  if (origins.empty() && rule.empty()) return;
  if (!rule.empty()) stem_ = fmt::format("{}/{}", rule, stem_);
  if (!origins.empty()) stem_ = fmt::format("{}/{}", origins[0], stem_);
  node_name_ = stem_;
  if (nodes_table_.size() + rules_table_.size() > kTableBytesMax) return;
  node_name_ = FreshNode(node_name_);
  taken_nodes_.erase(node_name_);  // The node itself takes it.
  if (!origins.empty()) {
    nodes_table_ += fmt::format("{}\t{}\n", node_name_, fmt::join(origins, "\t"));
  }
  if (!rule.empty()) rules_table_ += fmt::format("{}\t{}\n", node_name_, rule);
}

void Exporter::WriteTables() {
  auto& metadata = model_.origin.metadata;
  std::erase_if(metadata, [](const auto& entry) {
    return entry.first == kNodesKey || entry.first == kRulesKey;
  });
  if (!nodes_table_.empty()) metadata.emplace_back(kNodesKey, nodes_table_);
  if (!rules_table_.empty()) metadata.emplace_back(kRulesKey, rules_table_);
}

// Keeps the names of inputs and outputs. A value with two output names gets the first one.
void Exporter::NameOutputs() {
  for (size_t i = 0; i < graph_.inputs().size(); ++i) {
    const Edge edge{graph_.inputs()[i], 0};
    names_[edge] = graph_.input_name(i);
    taken_.insert(graph_.input_name(i));
    AddValueInfo(edge, graph_.input_name(i), model_.inputs);
  }
  for (const DynamicPart::Input& input : dynamic_.inputs) {
    const int64_t end = static_cast<int64_t>(model_.inputs.size());
    model_.inputs.insert(model_.inputs.begin() + std::clamp<int64_t>(input.position, 0, end),
                         {.name = input.name, .proto = input.proto});
  }
  for (const GraphOutput& output : graph_.outputs()) {
    taken_.insert(output.name);
    if (dynamic_.empty()) AddValueInfo(output.edge, output.name, model_.outputs);
    if (!IsFolded(output.edge.node)) names_.emplace(output.edge, output.name);
  }
}

void Exporter::AddValueInfo(Edge edge, const std::string& name,
                            std::vector<OnnxValueInfo>& list) const {
  const TensorType& type = graph_.type(edge);
  OnnxValueInfo info{.name = name, .data_type = DTypeToOnnx(type.dtype), .has_shape = true};
  if (open_.empty()) {
    for (const int64_t size : type.shape) info.dims.push_back({.size = size});
  } else {
    info.dims = open_.DimsOf(edge);
  }
  TakeStated(info);
  list.push_back(std::move(info));
}

bool Exporter::IsFolded(NodeId id) const {
  const bool is_computed = open_.IsOpen(id) && !graph_.node(id).inputs.empty();
  return graph_.is_constant(id) && graph_.node(id).op != OpKind::kOpaque && !is_computed;
}

// A recipe that only folded values read is part of these.
bool Exporter::IsWritten(NodeId id) const {
  const Node& node = graph_.node(id);
  if (node.op == OpKind::kInput || IsFolded(id)) return false;
  if (!graph_.is_constant(id)) return true;
  for (int32_t i = 0; i < static_cast<int32_t>(node.outputs.size()); ++i) {
    const auto uses = graph_.uses({id, i});
    const auto is_written = [&](const Use& use) { return !IsFolded(use.node); };
    if (graph_.is_output({id, i}) || std::ranges::any_of(uses, is_written)) return true;
  }
  return false;
}

StatusOr<const Tensor*> Exporter::ConstantOf(Edge edge) {
  if (!graph_.is_constant(edge.node) || open_.IsOpen(edge.node)) {
    return static_cast<const Tensor*>(nullptr);
  }
  const auto found = constants_.find(edge);
  if (found != constants_.end()) return static_cast<const Tensor*>(&found->second);
  AG_LET(Tensor tensor, Materialize(graph_, edge, weights_));
  return static_cast<const Tensor*>(&constants_.emplace(edge, std::move(tensor)).first->second);
}

std::string Exporter::AddInitializer(const Tensor& tensor, std::string name) {
  tensors_.push_back(tensor);
  if (name.empty()) name = Fresh("const");
  model_.initializers.push_back(FromTensor(name, tensors_.back()));
  return name;
}

StatusOr<std::string> Exporter::NameOf(Edge edge) {
  const auto found = names_.find(edge);
  if (found != names_.end()) return found->second;
  if (open_.IsOpen(edge.node)) {
    AG_LET(std::string name, OpenConstantName(edge));
    return names_[edge] = std::move(name);
  }
  AG_LET(const Tensor* tensor, ConstantOf(edge));
  AG_CHECK(tensor != nullptr);  // The node that makes a value names it.
  std::string name = weights_names_[edge];
  if (name.empty() && !kept_.WeightOf(edge.node).empty()) name = Fresh(kept_.WeightOf(edge.node));
  return names_[edge] = AddInitializer(*tensor, std::move(name));
}

std::string Exporter::IntsName(const std::vector<int64_t>& values) {
  std::string& name = ints_[values];
  if (name.empty()) {
    name = AddInitializer(Tensor::FromInts({static_cast<int64_t>(values.size())}, values));
  }
  return name;
}

std::string Exporter::FloatsName(const std::vector<float>& values) {
  std::string& name = floats_[values];
  if (name.empty()) {
    Tensor tensor = Tensor::Zeros({DType::kFloat32, {static_cast<int64_t>(values.size())}});
    std::copy(values.begin(), values.end(), tensor.Mutable<float>().begin());
    name = AddInitializer(tensor);
  }
  return name;
}

std::string Exporter::ScalarName(DType dtype, double value) {
  std::string& name = scalars_[{dtype, value}];
  if (name.empty()) {
    Tensor tensor = Tensor::Zeros({dtype, {}});
    tensor.Put(0, value);
    name = AddInitializer(tensor);
  }
  return name;
}

std::vector<std::string> Exporter::OutputNames(NodeId id) {
  const Node& node = graph_.node(id);
  std::vector<std::string> names;
  for (int32_t i = 0; i < static_cast<int32_t>(node.outputs.size()); ++i) {
    const auto [slot, added] = names_.emplace(Edge{id, i}, "");
    if (added) slot->second = Fresh(stem_);
    names.push_back(slot->second);
  }
  return names;
}

std::string Exporter::Append(std::string_view op_type, std::vector<std::string> inputs,
                             std::vector<OnnxAttribute> attributes,
                             std::vector<std::string> outputs) {
  OnnxNode node{.op_type = std::string(op_type), .inputs = std::move(inputs)};
  node.attributes = std::move(attributes);
  std::string stem(op_type);
  std::transform(stem.begin(), stem.end(), stem.begin(), [](char c) { return std::tolower(c); });
  if (!node_name_.empty()) stem = fmt::format("{}/{}", node_name_, stem);
  const bool is_last = !outputs.empty() && !node_name_.empty();  // The others lead to it.
  node.name = is_last ? FreshNode(node_name_) : FreshNode(Fresh(stem));
  if (!outputs.empty()) node.notes = notes_;
  node.outputs = outputs.empty() ? std::vector{Fresh(stem)} : std::move(outputs);
  model_.nodes.push_back(std::move(node));
  return model_.nodes.back().outputs[0];
}

void Exporter::AppendKept(OnnxNode node) {
  node.name = FreshNode(node_name_.empty() ? Fresh("kept") : node_name_);
  node.notes = notes_;
  model_.nodes.push_back(std::move(node));
}

// Adds an Identity for an output whose value is an input, a constant, or already another output.
Status Exporter::WriteOutputs() {
  std::set<Edge> done;
  for (const GraphOutput& output : graph_.outputs()) {
    const bool computed =
        graph_.node(output.edge.node).op != OpKind::kInput && !IsFolded(output.edge.node);
    if (done.insert(output.edge).second && computed) continue;
    if (!dynamic_.empty() && !dynamic_names_.contains(output.name)) continue;  // Nobody reads it.
    const auto named = names_.find(output.edge);
    if (named != names_.end() && named->second == output.name) continue;  // Handed through.
    AG_LET(const std::string from, NameOf(output.edge));
    Append("Identity", {from}, {}, {output.name});
  }
  return OkStatus();
}

Status Exporter::ReserveDynamicNames() {
  std::set<std::string> operators;
  for (const std::string& bytes : dynamic_.nodes) {
    AG_LET(const OnnxNode node, ParseNode(bytes));
    AG_TRY(NamesIn(node, dynamic_names_, operators));
  }
  for (const DynamicPart::Input& input : dynamic_.inputs) dynamic_names_.insert(input.name);
  for (const auto& [name, proto] : dynamic_.outputs) dynamic_names_.insert(name);
  taken_.insert(dynamic_names_.begin(), dynamic_names_.end());
  for (const auto& [domain, version] : given_opsets_) {
    if (!domain.empty()) continue;
    for (const std::string& name : operators) {
      if (MeansTheSame(name, version, opset_)) continue;
      return Err(StatusCode::kUnimplemented, "operator {} has another form in opset {} than in {}",
                 name, opset_, version);
    }
  }
  return OkStatus();
}

Status Exporter::WriteDynamicPart() {
  for (const auto& [name, type, digest] : dynamic_.weights) {
    AG_LET(Tensor tensor, ag::ConstantOf(weights_, digest, type));
    tensors_.push_back(std::move(tensor));
    model_.initializers.push_back(FromTensor(name, tensors_.back()));
  }
  for (const std::string& bytes : dynamic_.nodes) {
    AG_LET(OnnxNode node, ParseNode(bytes));
    WriteDynamicTypes(node);
    model_.nodes.push_back(std::move(node));
  }
  for (const std::string& bytes : dynamic_.functions) {
    AG_LET(OnnxFunction function, ParseFunction(bytes));
    model_.functions.push_back(std::move(function));
  }
  for (const auto& [name, proto] : dynamic_.outputs) {
    model_.outputs.push_back({.name = name, .proto = proto});
  }
  return OkStatus();
}

StatusOr<OnnxModel> Exporter::Run() {
  AG_TRY(ReserveDynamicNames());
  NameOutputs();
  KeepNames();
  ReserveStatedNames();
  for (NodeId id = 0; id < graph_.size(); ++id) {
    const Node& node = graph_.node(id);
    if (!IsWritten(id)) continue;
    BeginNode(id);
    writing_ = id;
    AG_TRY(WriteNode(id, *this), "node {} ({})", id, Info(node.op).text_name);
    WriteTypes(id);
  }
  node_name_.clear();
  notes_.clear();
  writing_ = graph_.size();
  AG_TRY(WriteOutputs());
  AG_TRY(WriteDynamicPart());
  AG_TRY(WriteAnnotations());
  WriteTables();
  return std::move(model_);
}

OnnxAttribute IntAttribute(std::string_view name, int64_t value) {
  return {.name = std::string(name), .type = OnnxAttributeType::kInt, .i = value};
}

OnnxAttribute FloatAttribute(std::string_view name, double value) {
  return {
      .name = std::string(name), .type = OnnxAttributeType::kFloat, .f = static_cast<float>(value)};
}

OnnxAttribute StringAttribute(std::string_view name, std::string_view value) {
  return {.name = std::string(name), .type = OnnxAttributeType::kString, .s = std::string(value)};
}

OnnxAttribute IntsAttribute(std::string_view name, std::vector<int64_t> values) {
  return {.name = std::string(name), .type = OnnxAttributeType::kInts, .ints = std::move(values)};
}

}  // namespace ag
