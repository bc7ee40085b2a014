#include <absl/strings/escaping.h>

#include "graph/onnx/fields.h"
#include "graph/onnx/origin.h"
#include "graph/onnx/wire.h"
#include "onnx/onnx_pb.h"

namespace ag {
namespace {

constexpr size_t kGatheredBytes = size_t{64} << 10;  // Smaller pieces are collected before a write.
constexpr uint64_t kProtobufBytesMax = (uint64_t{1} << 31) - 1;

// Writes all fields of a TensorProto except its bytes.
void HeadTo(const OnnxTensor& tensor, onnx::TensorProto& proto) {
  if (!tensor.name.empty()) proto.set_name(tensor.name);
  proto.set_data_type(tensor.data_type);
  for (const int64_t dim : tensor.dims) proto.add_dims(dim);
}

void ValueTo(const OnnxAttribute& attribute, onnx::AttributeProto& proto) {
  switch (attribute.type) {
    case OnnxAttributeType::kNone:
    case OnnxAttributeType::kGraph:
    case OnnxAttributeType::kTensor:
      break;  // Occurs only inside `proto` of a node.
    case OnnxAttributeType::kFloat:
      proto.set_f(attribute.f);
      break;
    case OnnxAttributeType::kInt:
      proto.set_i(attribute.i);
      break;
    case OnnxAttributeType::kString:
      proto.set_s(attribute.s);
      break;
    case OnnxAttributeType::kFloats:
      proto.mutable_floats()->Add(attribute.floats.begin(), attribute.floats.end());
      break;
    case OnnxAttributeType::kInts:
      proto.mutable_ints()->Add(attribute.ints.begin(), attribute.ints.end());
      break;
    case OnnxAttributeType::kStrings:
      proto.mutable_strings()->Add(attribute.strings.begin(), attribute.strings.end());
      break;
  }
}

template <class List>
void SetNames(const std::vector<std::string>& names, List* list) {
  list->Clear();
  for (const std::string& name : names) *list->Add() = name;
}

Status NodeTo(const OnnxNode& node, onnx::NodeProto& proto) {
  if (!node.proto.empty()) {
    if (!proto.ParseFromArray(node.proto.data(), static_cast<int>(node.proto.size()))) {
      return Err(StatusCode::kInvalidArgument, "a kept node is not readable");
    }
  } else {
    proto.set_op_type(node.op_type);
    if (!node.domain.empty()) proto.set_domain(node.domain);
    for (const OnnxAttribute& attribute : node.attributes) {
      onnx::AttributeProto* added = proto.add_attribute();
      added->set_name(attribute.name);
      added->set_type(static_cast<onnx::AttributeProto::AttributeType>(attribute.type));
      ValueTo(attribute, *added);
    }
  }
  if (!node.notes.empty() && !proto.MergeFromString(node.notes)) {
    return Err(StatusCode::kInvalidArgument, "the comment of node {} is not readable",
               Quoted(node.name));
  }
  proto.set_name(node.name);
  SetNames(node.inputs, proto.mutable_input());
  SetNames(node.outputs, proto.mutable_output());
  return OkStatus();
}

void ValueInfoTo(const OnnxValueInfo& info, onnx::ValueInfoProto& proto) {
  const bool is_read = !info.proto.empty() && proto.ParseFromString(info.proto);
  if (is_read && (info.data_type == 0 || info.kind != OnnxKind::kTensor)) return;
  if (!is_read) proto.Clear();
  proto.set_name(info.name);
  auto& type = *proto.mutable_type()->mutable_tensor_type();
  type.set_elem_type(info.data_type);
  if (!info.has_shape) return type.clear_shape();
  auto& dims = *type.mutable_shape()->mutable_dim();
  if (dims.size() != static_cast<int>(info.dims.size())) dims.Clear();
  for (int i = 0; i < static_cast<int>(info.dims.size()); ++i) {
    const OnnxDim& dim = info.dims[static_cast<size_t>(i)];
    auto* written = i < dims.size() ? &dims[i] : dims.Add();
    written->clear_value();
    if (dim.size >= 0) written->set_dim_value(dim.size);
    if (dim.size < 0 && !dim.name.empty()) written->set_dim_param(dim.name);
  }
}

void AnnotationTo(const QuantAnnotation& annotation, onnx::TensorAnnotation& proto) {
  proto.set_tensor_name(annotation.tensor);
  for (const auto& [key, name] : annotation.parameters) {
    auto* entry = proto.add_quant_parameter_tensor_names();
    entry->set_key(key);
    entry->set_value(name);
  }
}

void OriginTo(const OnnxOrigin& origin, onnx::ModelProto& proto) {
  proto.set_ir_version(origin.ir_version);
  for (const auto& [domain, version] : origin.opsets) {
    auto* opset = proto.add_opset_import();
    opset->set_domain(domain);
    opset->set_version(version);
  }
  proto.set_producer_name(origin.producer_name);
  proto.set_producer_version(origin.producer_version);
  proto.set_domain(origin.domain);
  proto.set_doc_string(origin.doc_string);
  proto.set_model_version(origin.model_version);
  for (const auto& [key, value] : origin.metadata) {
    auto* entry = proto.add_metadata_props();
    entry->set_key(key);
    entry->set_value(value);
  }
}

// The message of one initializer without its bytes, and the size of the whole message.
struct Piece {
  std::string head;
  std::string_view bytes;  // Of strings all is in `head`.
  uint64_t size = 0;
};

Status StringsTo(const OnnxTensor& tensor, std::string& head) {
  AG_LET(const Tensor strings, ToTensor(tensor));
  for (const std::string_view value : strings.Strings()) {
    AppendLengthTag(kTensorStringData, value.size(), head);
    head += value;
  }
  return OkStatus();
}

StatusOr<std::vector<Piece>> Pieces(const OnnxModel& model) {
  std::vector<Piece> pieces;
  for (const OnnxTensor& tensor : model.initializers) {
    onnx::TensorProto proto;
    HeadTo(tensor, proto);
    Piece piece{.head = proto.SerializeAsString()};
    if (tensor.data_type == onnx::TensorProto::STRING) {
      AG_TRY(StringsTo(tensor, piece.head));
    } else {
      AppendLengthTag(kTensorRawData, tensor.bytes.size(), piece.head);
      piece.bytes = tensor.bytes;
    }
    piece.size = piece.head.size() + piece.bytes.size();
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

// Sends `out`, then the initializers; the bytes of large ones without a copy.
Status PiecesTo(const std::vector<Piece>& pieces, std::string out, const ByteSink& sink) {
  for (const Piece& piece : pieces) {
    AppendLengthTag(kGraphInitializer, piece.size, out);
    out += piece.head;
    if (piece.bytes.size() < kGatheredBytes && out.size() < kGatheredBytes) {
      out += piece.bytes;
      continue;
    }
    AG_TRY(sink(out));
    AG_TRY(sink(piece.bytes));
    out.clear();
  }
  return out.empty() ? OkStatus() : sink(out);
}

}  // namespace

Status SerializeModel(const OnnxModel& model, const ByteSink& sink) {
  onnx::ModelProto head;
  OriginTo(model.origin, head);
  for (const OnnxFunction& function : model.functions) {
    auto& added = *head.add_functions();
    if (!added.ParseFromArray(function.proto.data(), static_cast<int>(function.proto.size()))) {
      return Err(StatusCode::kInvalidArgument, "function {} is not readable",
                 Quoted(function.name));
    }
  }
  onnx::GraphProto graph;
  if (!graph.ParseFromString(model.origin.graph_notes)) {
    return Err(StatusCode::kInvalidArgument, "the comment of the graph is not readable");
  }
  graph.set_name(model.origin.graph_name);
  for (const OnnxNode& node : model.nodes) AG_TRY(NodeTo(node, *graph.add_node()));
  for (const OnnxValueInfo& info : model.inputs) ValueInfoTo(info, *graph.add_input());
  for (const OnnxValueInfo& info : model.outputs) ValueInfoTo(info, *graph.add_output());
  for (const OnnxValueInfo& info : model.value_infos) ValueInfoTo(info, *graph.add_value_info());
  for (const QuantAnnotation& annotation : model.annotations) {
    AnnotationTo(annotation, *graph.add_quantization_annotation());
  }
  AG_LET(const std::vector<Piece> pieces, Pieces(model));
  uint64_t graph_size = graph.ByteSizeLong();
  if (graph_size + head.ByteSizeLong() > kProtobufBytesMax) {
    return Err(StatusCode::kResourceExhausted,
               "the model has {} bytes without its weights, protobuf ends at 2 GiB", graph_size);
  }
  std::string tag;
  for (const Piece& piece : pieces) {
    tag.clear();
    AppendLengthTag(kGraphInitializer, piece.size, tag);
    graph_size += tag.size() + piece.size;
  }
  std::string out = head.SerializeAsString();
  AppendLengthTag(kModelGraph, graph_size, out);
  graph.AppendToString(&out);
  return PiecesTo(pieces, std::move(out), sink);
}

StatusOr<std::string> SerializeModel(const OnnxModel& model) {
  std::string bytes;
  const auto append = [&](std::string_view piece) {
    bytes += piece;
    return OkStatus();
  };
  AG_TRY(SerializeModel(model, append));
  return bytes;
}

StatusOr<std::string> AnonymousNode(const OnnxNode& node, const std::string& name) {
  OnnxNode anonymous = node;
  anonymous.name = name;
  for (std::string& input : anonymous.inputs) input = input.empty() ? "" : "x";
  for (std::string& output : anonymous.outputs) output = output.empty() ? "" : "x";
  onnx::NodeProto proto;
  AG_TRY(NodeTo(anonymous, proto));
  if (name.empty()) proto.clear_name();
  return FieldsBut(proto.SerializeAsString(), kNodeNotes);
}

}  // namespace ag
