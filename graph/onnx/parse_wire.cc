#include <bit>
#include <map>
#include <set>

#include "graph/onnx/fields.h"
#include "graph/onnx/origin.h"
#include "graph/onnx/wire.h"
#include "onnx/onnx_pb.h"

namespace ag {
namespace {

// The element types of 8 and 4 bits that the linked library does not know: TensorProto.DataType
// FLOAT8E4M3FN to FLOAT4E2M1.
constexpr int kFirstNarrow = 17, kLastNarrow = 23;

static_assert(std::endian::native == std::endian::little, "tensor bytes are little-endian");

template <class Message>
Status Parse(std::string_view bytes, std::string_view what, Message& message) {
  if (bytes.size() > (size_t{1} << 31) - 1) {
    return Err(StatusCode::kResourceExhausted, "{} has {} bytes, protobuf ends at 2 GiB", what,
               bytes.size());
  }
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Err(StatusCode::kInvalidArgument, "not ONNX: {} is not readable", what);
  }
  return OkStatus();
}

template <class To, class From>
void AppendAs(const From& values, std::string& out) {
  out.reserve(values.size() * sizeof(To));
  for (const auto value : values) {
    const To element = static_cast<To>(value);
    out.append(reinterpret_cast<const char*>(&element), sizeof(To));
  }
}

// Returns the typed list of `proto` (float_data, int32_data, ...) as bytes of its element type.
std::string BytesOfLists(const onnx::TensorProto& proto) {
  using P = onnx::TensorProto;
  std::string out;
  switch (proto.data_type()) {
    case P::FLOAT:
      AppendAs<float>(proto.float_data(), out);
      break;
    case P::DOUBLE:
      AppendAs<double>(proto.double_data(), out);
      break;
    case P::INT64:
      AppendAs<int64_t>(proto.int64_data(), out);
      break;
    case P::INT32:
      AppendAs<int32_t>(proto.int32_data(), out);
      break;
    case P::INT16:
      AppendAs<int16_t>(proto.int32_data(), out);
      break;
    case P::UINT16:
    case P::FLOAT16:
    case P::BFLOAT16:
      AppendAs<uint16_t>(proto.int32_data(), out);
      break;
    case P::INT8:
    case P::UINT8:
      AppendAs<uint8_t>(proto.int32_data(), out);
      break;
    case P::BOOL:
      AppendAs<bool>(proto.int32_data(), out);
      break;
    case P::UINT32:
      AppendAs<uint32_t>(proto.uint64_data(), out);
      break;
    case P::UINT64:
      AppendAs<uint64_t>(proto.uint64_data(), out);
      break;
    default:
      if (proto.data_type() < kFirstNarrow || proto.data_type() > kLastNarrow) break;
      AppendAs<uint8_t>(proto.int32_data(), out);  // Of 4 bits: two in one number.
      break;
  }
  return out;
}

// Returns the elements of `proto` as the bytes of a tensor of strings.
std::string PackStrings(std::span<const std::string_view> strings) {
  const auto count = static_cast<int64_t>(strings.size());
  return std::string(Tensor::FromStrings({count}, strings).bytes());
}

// Returns the tensor of `proto`; its raw bytes are in `raw`, its strings in `strings` when they are
// not in `proto`.
OnnxTensor FromProto(onnx::TensorProto& proto, std::string_view raw,
                     std::vector<std::string_view> strings = {}) {
  OnnxTensor tensor{.name = proto.name(), .data_type = proto.data_type()};
  tensor.dims.assign(proto.dims().begin(), proto.dims().end());
  if (proto.data_location() == onnx::TensorProto::EXTERNAL) {
    OnnxExternal& external = tensor.external.emplace();
    for (const auto& entry : proto.external_data()) {
      if (entry.key() == "location") external.location = entry.value();
      if (entry.key() == "offset") external.offset = entry.value();
      if (entry.key() == "length") external.length = entry.value();
    }
  }
  if (proto.data_type() == onnx::TensorProto::STRING) {
    strings.insert(strings.end(), proto.string_data().begin(), proto.string_data().end());
    tensor.owned = std::make_shared<const std::string>(PackStrings(strings));
    tensor.bytes = *tensor.owned;
    return tensor;
  }
  tensor.bytes = raw;
  if (raw.empty()) {
    tensor.owned = std::make_shared<const std::string>(
        proto.raw_data().empty() ? BytesOfLists(proto) : std::move(*proto.mutable_raw_data()));
    tensor.bytes = *tensor.owned;
  }
  return tensor;
}

OnnxSparseTensor FromProto(onnx::SparseTensorProto& proto) {
  OnnxSparseTensor sparse{.values = FromProto(*proto.mutable_values(), {})};
  if (proto.has_indices()) sparse.indices = FromProto(*proto.mutable_indices(), {});
  sparse.dims.assign(proto.dims().begin(), proto.dims().end());
  return sparse;
}

OnnxAttributeType TypeOf(const onnx::AttributeProto& proto) {
  if (proto.type() != 0) return static_cast<OnnxAttributeType>(proto.type());
  if (proto.has_f()) return OnnxAttributeType::kFloat;
  if (proto.has_i()) return OnnxAttributeType::kInt;
  if (proto.has_s()) return OnnxAttributeType::kString;
  if (proto.has_t()) return OnnxAttributeType::kTensor;
  if (proto.has_g()) return OnnxAttributeType::kGraph;
  if (proto.ints_size() > 0) return OnnxAttributeType::kInts;
  if (proto.floats_size() > 0) return OnnxAttributeType::kFloats;
  if (proto.strings_size() > 0) return OnnxAttributeType::kStrings;
  return OnnxAttributeType::kNone;
}

OnnxAttribute FromProto(onnx::AttributeProto& proto) {
  OnnxAttribute attribute{.name = proto.name(), .type = TypeOf(proto)};
  attribute.i = proto.i();
  attribute.f = proto.f();
  attribute.s = proto.s();
  attribute.ints.assign(proto.ints().begin(), proto.ints().end());
  attribute.floats.assign(proto.floats().begin(), proto.floats().end());
  attribute.strings.assign(proto.strings().begin(), proto.strings().end());
  if (proto.has_t()) attribute.tensor = FromProto(*proto.mutable_t(), {});
  if (proto.has_sparse_tensor()) attribute.sparse = FromProto(*proto.mutable_sparse_tensor());
  return attribute;
}

// Adds the names that `graph` reads but does not define. Returns the depth of nesting, 1 for a
// graph without subgraphs. Protobuf's limit on nested messages bounds the recursion.
int Captures(const onnx::GraphProto& graph, std::set<std::string>& captured) {
  std::set<std::string> defined, read;
  for (const auto& input : graph.input()) defined.insert(input.name());
  for (const auto& tensor : graph.initializer()) defined.insert(tensor.name());
  for (const auto& tensor : graph.sparse_initializer()) defined.insert(tensor.values().name());
  for (const auto& output : graph.output()) read.insert(output.name());
  int deepest = 0;
  for (const auto& node : graph.node()) {
    read.insert(node.input().begin(), node.input().end());
    defined.insert(node.output().begin(), node.output().end());
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g()) deepest = std::max(deepest, Captures(attribute.g(), read));
      for (const auto& g : attribute.graphs()) deepest = std::max(deepest, Captures(g, read));
    }
  }
  for (const std::string& name : read) {
    if (!name.empty() && !defined.contains(name)) captured.insert(name);
  }
  return deepest + 1;
}

// Protobuf's limit on nested messages bounds the recursion.
void NamesInGraph(const onnx::GraphProto& graph, std::set<std::string>& names,
                  std::set<std::string>& operators) {
  for (const auto& info : graph.input()) names.insert(info.name());
  for (const auto& info : graph.output()) names.insert(info.name());
  for (const auto& tensor : graph.initializer()) names.insert(tensor.name());
  for (const auto& tensor : graph.sparse_initializer()) names.insert(tensor.values().name());
  for (const auto& node : graph.node()) {
    names.insert(node.name());
    names.insert(node.input().begin(), node.input().end());
    names.insert(node.output().begin(), node.output().end());
    if (node.domain().empty() || node.domain() == "ai.onnx") operators.insert(node.op_type());
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g()) NamesInGraph(attribute.g(), names, operators);
      for (const auto& inner : attribute.graphs()) NamesInGraph(inner, names, operators);
    }
  }
}

std::string DomainOf(const std::string& domain) { return domain == "ai.onnx" ? "" : domain; }

OnnxNode FromProto(onnx::NodeProto& proto, std::string_view bytes) {
  OnnxNode node{.op_type = proto.op_type(), .domain = proto.domain(), .name = proto.name()};
  node.domain = DomainOf(node.domain);
  node.inputs.assign(proto.input().begin(), proto.input().end());
  node.outputs.assign(proto.output().begin(), proto.output().end());
  node.proto = bytes;
  std::set<std::string> captured;
  for (auto& attribute : *proto.mutable_attribute()) {
    if (attribute.has_g()) {
      node.subgraph_depth = std::max(node.subgraph_depth, Captures(attribute.g(), captured));
    }
    for (const auto& graph : attribute.graphs()) {
      node.subgraph_depth = std::max(node.subgraph_depth, Captures(graph, captured));
    }
    node.attributes.push_back(FromProto(attribute));
  }
  node.captures.assign(captured.begin(), captured.end());
  return node;
}

OnnxKind KindOf(const onnx::TypeProto& type) {
  switch (type.value_case()) {
    case onnx::TypeProto::kTensorType:
    case onnx::TypeProto::VALUE_NOT_SET:
      return OnnxKind::kTensor;
    case onnx::TypeProto::kSequenceType:
      return KindOf(type.sequence_type().elem_type()) == OnnxKind::kTensor ? OnnxKind::kSequence
                                                                           : OnnxKind::kOther;
    case onnx::TypeProto::kOptionalType: {
      const OnnxKind element = KindOf(type.optional_type().elem_type());
      const bool is_plain = element == OnnxKind::kTensor || element == OnnxKind::kSequence;
      return is_plain ? OnnxKind::kOptional : OnnxKind::kOther;
    }
    default:
      return OnnxKind::kOther;
  }
}

// Returns the element type of the tensors in a type.
int32_t ElementOf(const onnx::TypeProto& type) {
  if (type.has_sequence_type()) return ElementOf(type.sequence_type().elem_type());
  if (type.has_optional_type()) return ElementOf(type.optional_type().elem_type());
  return type.tensor_type().elem_type();
}

OnnxValueInfo FromProto(const onnx::ValueInfoProto& proto) {
  OnnxValueInfo info{.name = proto.name()};
  info.kind = KindOf(proto.type());
  const auto& type = proto.type().tensor_type();
  info.data_type = ElementOf(proto.type());
  info.has_shape = type.has_shape();
  for (const auto& dim : type.shape().dim()) {
    info.dims.push_back({dim.has_dim_value() ? dim.dim_value() : -1, dim.dim_param()});
  }
  return info;
}

Status ReadRestOfGraph(std::string_view bytes, OnnxModel& model) {
  onnx::GraphProto graph;
  AG_TRY(Parse(bytes, "the graph", graph));
  model.origin.graph_name = graph.name();
  for (auto& sparse : *graph.mutable_sparse_initializer()) {
    model.sparse_initializers.push_back(FromProto(sparse));
  }
  for (const auto& info : graph.input()) {
    model.inputs.push_back(FromProto(info));
    model.inputs.back().proto = info.SerializeAsString();
  }
  for (const auto& info : graph.output()) {
    model.outputs.push_back(FromProto(info));
    model.outputs.back().proto = info.SerializeAsString();
  }
  for (const auto& info : graph.value_info()) {
    model.value_infos.push_back(FromProto(info));
    model.value_infos.back().proto = info.SerializeAsString();
  }
  for (const auto& annotation : graph.quantization_annotation()) {
    model.annotations.push_back({.tensor = annotation.tensor_name()});
    for (const auto& entry : annotation.quant_parameter_tensor_names()) {
      model.annotations.back().parameters.emplace_back(entry.key(), entry.value());
    }
  }
  AG_LET(model.origin.graph_notes, FieldsOf(bytes, kGraphNotes));
  return OkStatus();
}

Status ReadGraph(std::string_view bytes, int64_t nodes_max, OnnxModel& model) {
  std::string rest;
  AG_TRY(ForEachField(bytes, [&](const WireField& field) -> Status {
    if (field.number == kGraphNode && field.is_bytes) {
      if (static_cast<int64_t>(model.nodes.size()) >= nodes_max) {
        return Err(StatusCode::kResourceExhausted, "more than {} nodes", nodes_max);
      }
      AG_LET(OnnxNode node, ParseNode(field.payload));
      model.nodes.push_back(std::move(node));
    } else if (field.number == kGraphInitializer && field.is_bytes) {
      AG_LET(OnnxTensor tensor, ParseTensor(field.payload));
      model.initializers.push_back(std::move(tensor));
    } else {
      rest += field.whole;
    }
    return OkStatus();
  }));
  return ReadRestOfGraph(rest, model);
}

// The attributes that a call of a function gives to its nodes.
using AttributesByName = std::map<std::string, const onnx::AttributeProto*>;

// Replaces attributes that refer to the call's; one that the call does not give goes. Protobuf's
// limit on nested messages bounds the recursion.
void GiveAttributes(const AttributesByName& given, onnx::NodeProto& node) {
  auto& attributes = *node.mutable_attribute();
  for (int i = attributes.size() - 1; i >= 0; --i) {
    onnx::AttributeProto& attribute = attributes[i];
    if (attribute.has_g()) {
      for (auto& inner : *attribute.mutable_g()->mutable_node()) GiveAttributes(given, inner);
    }
    if (attribute.ref_attr_name().empty()) continue;
    const auto found = given.find(attribute.ref_attr_name());
    if (found == given.end()) {
      attributes.DeleteSubrange(i, 1);
      continue;
    }
    const std::string name = attribute.name();
    attribute = *found->second;
    attribute.set_name(name);
  }
}

Status ReadRestOfModel(std::string_view bytes, OnnxModel& model) {
  onnx::ModelProto proto;
  AG_TRY(Parse(bytes, "the model", proto));
  OnnxOrigin& origin = model.origin;
  origin.ir_version = proto.ir_version();
  for (const auto& opset : proto.opset_import()) {
    origin.opsets.emplace_back(DomainOf(opset.domain()), opset.version());
  }
  origin.producer_name = proto.producer_name();
  origin.producer_version = proto.producer_version();
  origin.domain = proto.domain();
  origin.doc_string = proto.doc_string();
  origin.model_version = proto.model_version();
  for (const auto& entry : proto.metadata_props()) {
    origin.metadata.emplace_back(entry.key(), entry.value());
  }
  model.training_infos = proto.training_info_size();
  return OkStatus();
}

}  // namespace

StatusOr<OnnxTensor> ParseTensor(std::string_view bytes) {
  std::string rest;
  std::string_view raw;
  std::vector<std::string_view> strings;  // Without protobuf's copies, which take 32 bytes more.
  AG_TRY(ForEachField(bytes, [&](const WireField& field) {
    if (field.number == kTensorRawData && field.is_bytes) {
      raw = field.payload;
    } else if (field.number == kTensorStringData && field.is_bytes) {
      strings.push_back(field.payload);
    } else {
      rest += field.whole;
    }
    return OkStatus();
  }));
  onnx::TensorProto proto;
  AG_TRY(Parse(rest, "a tensor", proto));
  return FromProto(proto, raw, std::move(strings));
}

StatusOr<OnnxFunction> ParseFunction(std::string_view bytes) {
  onnx::FunctionProto proto;
  AG_TRY(Parse(bytes, "a function", proto));
  OnnxFunction function{.name = proto.name(), .domain = DomainOf(proto.domain()), .proto = bytes};
  function.inputs.assign(proto.input().begin(), proto.input().end());
  function.outputs.assign(proto.output().begin(), proto.output().end());
  for (const auto& opset : proto.opset_import()) {
    function.opsets.emplace_back(DomainOf(opset.domain()), opset.version());
  }
  return function;
}

StatusOr<OnnxValueInfo> ParseValueInfo(std::string_view bytes) {
  onnx::ValueInfoProto proto;
  AG_TRY(Parse(bytes, "an output", proto));
  return FromProto(proto);
}

StatusOr<ValueForm> ParseForm(std::string_view value_info) {
  onnx::ValueInfoProto proto;
  AG_TRY(Parse(value_info, "a value's type", proto));
  ValueForm form{.kind = KindOf(proto.type())};
  const onnx::TypeProto* type = &proto.type();
  if (type->has_optional_type()) type = &type->optional_type().elem_type();
  form.holds_sequence = type->has_sequence_type();
  if (form.holds_sequence) type = &type->sequence_type().elem_type();
  const StatusOr<DType> dtype = DTypeFromOnnx(type->tensor_type().elem_type());
  if (dtype.ok()) form.item.dtype = *dtype;
  for (const auto& dim : type->tensor_type().shape().dim()) {
    form.item.shape.push_back(dim.dim_value() > 0 ? dim.dim_value() : 1);
  }
  if (!CheckType(form.item).ok()) form.item.shape.clear();
  return form;
}

StatusOr<OnnxNode> ParseNode(std::string_view bytes) {
  onnx::NodeProto proto;
  AG_TRY(Parse(bytes, "a node", proto));
  return FromProto(proto, bytes);
}

Status NamesIn(const OnnxNode& node, std::set<std::string>& names,
               std::set<std::string>& operators) {
  onnx::GraphProto graph;
  AG_TRY(Parse(node.proto, "a node", *graph.add_node()));
  NamesInGraph(graph, names, operators);
  return OkStatus();
}

StatusOr<OnnxModel> ParseSubgraph(const OnnxNode& node, std::string_view name, int64_t nodes_max) {
  std::optional<std::string_view> graph;
  AG_TRY(ForEachField(node.proto, [&](const WireField& field) -> Status {
    if (field.number != kNodeAttribute || !field.is_bytes) return OkStatus();
    std::string_view given, body;
    bool has_body = false;
    AG_TRY(ForEachField(field.payload, [&](const WireField& part) {
      if (part.number == kAttributeName && part.is_bytes) given = part.payload;
      if (part.number == kAttributeGraph && part.is_bytes) {
        body = part.payload;
        has_body = true;
      }
      return OkStatus();
    }));
    if (given == name && has_body) graph = body;
    return OkStatus();
  }));
  if (!graph.has_value()) {
    return Err(StatusCode::kInvalidArgument, "attribute \"{}\" is no graph", name);
  }
  OnnxModel model;
  AG_TRY(ReadGraph(*graph, nodes_max, model));
  return model;
}

StatusOr<FunctionBody> BodyOf(const OnnxFunction& function, const OnnxNode& call) {
  onnx::FunctionProto proto;
  AG_TRY(Parse(function.proto, "a function", proto));
  onnx::NodeProto caller;
  AG_TRY(Parse(call.proto, "a node", caller));
  AttributesByName given;
  std::deque<onnx::AttributeProto> defaults;  // The generated class does not know the field.
  AG_TRY(ForEachField(function.proto, [&](const WireField& field) -> Status {
    if (field.number != kFunctionAttribute || !field.is_bytes) return OkStatus();
    AG_TRY(Parse(field.payload, "an attribute", defaults.emplace_back()));
    given[defaults.back().name()] = &defaults.back();
    return OkStatus();
  }));
  for (const auto& attribute : caller.attribute()) given[attribute.name()] = &attribute;
  std::set<std::string_view> omitted;
  for (size_t i = 0; i < function.inputs.size(); ++i) {
    if (i >= call.inputs.size() || call.inputs[i].empty()) omitted.insert(function.inputs[i]);
  }
  FunctionBody body;
  for (auto& node : *proto.mutable_node()) {
    GiveAttributes(given, node);
    for (auto& input : *node.mutable_input()) {
      if (omitted.contains(input)) input.clear();
    }
    body.bytes.push_back(node.SerializeAsString());
    AG_LET(OnnxNode parsed, ParseNode(body.bytes.back()));
    body.nodes.push_back(std::move(parsed));
  }
  return body;
}

StatusOr<OnnxModel> ParseModel(std::string_view bytes, int64_t nodes_max) {
  OnnxModel model;
  std::string rest;
  bool has_graph = false;
  AG_TRY(ForEachField(bytes, [&](const WireField& field) -> Status {
    if (field.number == kModelGraph && field.is_bytes) {
      if (has_graph) return Err(StatusCode::kInvalidArgument, "the model has two graphs");
      has_graph = true;
      return ReadGraph(field.payload, nodes_max, model);
    }
    if (field.number == kModelFunction && field.is_bytes) {
      AG_LET(OnnxFunction function, ParseFunction(field.payload));
      model.functions.push_back(std::move(function));
      return OkStatus();
    }
    rest += field.whole;
    return OkStatus();
  }));
  AG_TRY(ReadRestOfModel(rest, model));
  if (!has_graph) return Err(StatusCode::kInvalidArgument, "the model has no graph");
  return model;
}

}  // namespace ag
