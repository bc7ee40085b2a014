#include "graph/codec.h"

#include "base/bytes.h"
#include "graph/shapes.h"

namespace ag {
namespace {

constexpr uint32_t kMagic = 0x52474741;  // "AGGR".

// The numbers of attribute kinds in the bytes.
enum ValueTag : uint8_t { kIntTag = 1, kFloatTag = 2, kIntsTag = 3, kStringTag = 4 };

void WriteEdge(Edge e, ByteWriter* out) {
  out->U32(static_cast<uint32_t>(e.node));
  out->U32(static_cast<uint32_t>(e.output));
}

// Writes a node. Only leaves and opaque nodes have their types written; shape rules give the
// others.
void WriteNode(const Node& node, ByteWriter* out) {
  // The name, because OpKind's numbers change with the table.
  out->String(Info(node.op).text_name);
  WriteAttributes(*node.attributes, out);
  out->U64(node.inputs.size());
  for (const Edge& e : node.inputs) WriteEdge(e, out);
  if (Has(node.op, kLeaf) || Has(node.op, kBarrier)) {
    out->U64(node.outputs.size());
    for (const TensorType& type : node.outputs) WriteType(type, out);
  }
  if (node.op == OpKind::kConstant) out->AddDigest(node.constant->digest);
}

void WriteCanonical(const Graph& graph, ByteWriter* out) {
  out->U32(kMagic);
  out->U32(kGraphBytesVersion);
  out->U64(graph.nodes().size());
  for (const Node& node : graph.nodes()) WriteNode(node, out);
  out->U64(graph.outputs().size());
  for (const GraphOutput& output : graph.outputs()) WriteEdge(output.edge, out);
}

void WriteTrailer(const Graph& graph, ByteWriter* out) {
  for (size_t i = 0; i < graph.inputs().size(); ++i) out->String(graph.input_name(i));
  for (const GraphOutput& output : graph.outputs()) out->String(output.name);
  for (const Node& node : graph.nodes()) {
    if (node.op == OpKind::kConstant) out->String(node.constant->inline_bytes);
  }
}

StatusOr<AttributeValue> ReadValue(ByteReader* in) {
  AG_LET(const uint8_t tag, in->U8());
  switch (tag) {
    case kIntTag: {
      AG_LET(const int64_t value, in->I64());
      return AttributeValue(value);
    }
    case kFloatTag: {
      AG_LET(const double value, in->F64());
      return AttributeValue(value);
    }
    case kIntsTag: {
      AG_LET(Ints value, in->Ints());
      return AttributeValue(std::move(value));
    }
    case kStringTag: {
      AG_LET(std::string value, in->String());
      return AttributeValue(std::move(value));
    }
    default:
      return Err(StatusCode::kDataLoss, "no attribute kind has number {}", tag);
  }
}

StatusOr<Attributes> ReadAttributes(ByteReader* in) {
  AG_LET(const uint64_t count, in->Count(9));
  Attributes attributes;
  for (uint64_t i = 0; i < count; ++i) {
    AG_LET(const std::string name, in->String());
    AG_LET(AttributeValue value, ReadValue(in));
    attributes.Set(name, std::move(value));
  }
  return attributes;
}

// Reads nodes into a builder. Reads everything first and fills the builder afterwards, because the
// bytes of constants are in the trailer.
class Decoder {
 public:
  explicit Decoder(std::string_view bytes) : bytes_(bytes), in_(bytes) {}

  StatusOr<Graph> Decode() {
    AG_TRY(ReadHeader());
    AG_TRY(ReadNodes());
    AG_TRY(ReadOutputs());
    AG_TRY(ReadTrailer());
    AG_TRY(in_.End());
    for (size_t i = 0; i < items_.size(); ++i) AG_TRY(AddNode(items_[i]), "node {}", i);
    for (size_t i = 0; i < outputs_.size(); ++i) {
      AG_TRY(CheckEdge(outputs_[i].edge));
      builder_.Output(outputs_[i].edge, outputs_[i].name);
    }
    AG_LET(Graph graph, builder_.Build());
    if (EncodeGraph(graph) == bytes_) return graph;
    return Err(StatusCode::kDataLoss, "the bytes are not canonical");
  }

 private:
  struct Item {
    OpKind op;
    Attributes attributes;
    std::vector<Edge> inputs;
    TensorTypes types;
    Digest digest;
    std::string text;  // The name of an Input, the inline bytes of a Constant.
  };

  Status ReadHeader() {
    AG_LET(const uint32_t magic, in_.U32());
    AG_LET(const uint32_t version, in_.U32());
    if (magic != kMagic) return Err(StatusCode::kDataLoss, "not a graph: magic is {:#x}", magic);
    if (version == kGraphBytesVersion) return OkStatus();
    return Err(StatusCode::kDataLoss, "version: expected {}, got {}", kGraphBytesVersion, version);
  }

  StatusOr<Edge> ReadEdge() {
    AG_LET(const uint32_t node, in_.U32());
    AG_LET(const uint32_t output, in_.U32());
    return Edge{static_cast<NodeId>(node), static_cast<int32_t>(output)};
  }

  Status ReadNodes() {
    AG_LET(const uint64_t count, in_.Count(24));
    for (uint64_t i = 0; i < count; ++i) AG_TRY(ReadNode(), "node {}", i);
    return OkStatus();
  }

  Status ReadNode() {
    AG_LET(const std::string name, in_.String());
    AG_LET(const OpKind op, OpKindFromText(name));
    Item item{.op = op};
    AG_LET(item.attributes, ReadAttributes(&in_));
    AG_LET(const uint64_t inputs, in_.Count(8));
    for (uint64_t i = 0; i < inputs; ++i) {
      AG_LET(const Edge e, ReadEdge());
      item.inputs.push_back(e);
    }
    if (Has(op, kLeaf) || Has(op, kBarrier)) {
      AG_LET(const uint64_t outputs, in_.Count(9));
      for (uint64_t i = 0; i < outputs; ++i) {
        AG_LET(TensorType type, ReadType(&in_));
        item.types.push_back(std::move(type));
      }
    }
    if (op == OpKind::kConstant) {
      AG_LET(item.digest, in_.ReadDigest());
    }
    items_.push_back(std::move(item));
    return OkStatus();
  }

  Status ReadOutputs() {
    AG_LET(const uint64_t count, in_.Count(8));
    for (uint64_t i = 0; i < count; ++i) {
      AG_LET(const Edge e, ReadEdge());
      outputs_.push_back({e, ""});
    }
    return OkStatus();
  }

  Status ReadTrailer() {
    for (Item& item : items_) {
      if (item.op != OpKind::kInput) continue;
      AG_LET(item.text, in_.String());
    }
    for (GraphOutput& output : outputs_) {
      AG_LET(output.name, in_.String());
    }
    for (Item& item : items_) {
      if (item.op != OpKind::kConstant) continue;
      AG_LET(item.text, in_.String());
    }
    return OkStatus();
  }

  // Checks that the builder already has the edge.
  Status CheckEdge(Edge e) const {
    if (e.node < 0 || e.node >= added_) {
      return Err(StatusCode::kDataLoss, "reads node {} of {}", e.node, added_);
    }
    const auto outputs = static_cast<int32_t>(builder_.node(e.node).outputs.size());
    if (e.output >= 0 && e.output < outputs) return OkStatus();
    return Err(StatusCode::kDataLoss, "reads output {} of {} of node {}", e.output, outputs,
               e.node);
  }

  Status AddNode(const Item& item) {
    for (const Edge& e : item.inputs) AG_TRY(CheckEdge(e));
    if (Has(item.op, kLeaf)) {
      AG_TRY(AddLeaf(item));
    } else if (Has(item.op, kBarrier)) {
      Attributes attributes = item.attributes;
      AG_TRY(CompleteAttributes(item.op, {}, &attributes));
      builder_.AddOpaque(item.inputs, std::move(attributes), item.types);
    } else {
      AG_TRY(builder_.Add(item.op, item.inputs, item.attributes));
    }
    ++added_;
    return OkStatus();
  }

  Status AddLeaf(const Item& item) {
    if (item.types.size() != 1) {
      return Err(StatusCode::kDataLoss, "leaf: expected 1 type, got {}", item.types.size());
    }
    if (item.op == OpKind::kInput) {
      builder_.Input(item.text, item.types[0]);
      return OkStatus();
    }
    if (!item.text.empty() && Sha256(item.text) != item.digest) {
      return Err(StatusCode::kDataLoss, "constant: inline bytes are not those of {}",
                 item.digest.Hex());
    }
    builder_.Constant(item.types[0], item.digest, item.text);
    return OkStatus();
  }

  std::string_view bytes_;
  ByteReader in_;
  std::vector<Item> items_;
  std::vector<GraphOutput> outputs_;
  GraphBuilder builder_;
  NodeId added_ = 0;
};

}  // namespace

void WriteAttributes(const Attributes& attributes, ByteWriter* out) {
  out->U64(attributes.items().size());
  for (const auto& [name, value] : attributes.items()) {
    out->String(name);
    if (const auto* i = std::get_if<int64_t>(&value)) {
      out->U8(kIntTag);
      out->I64(*i);
    } else if (const auto* f = std::get_if<double>(&value)) {
      out->U8(kFloatTag);
      out->F64(*f);
    } else if (const auto* list = std::get_if<Ints>(&value)) {
      out->U8(kIntsTag);
      out->Ints(*list);
    } else {
      out->U8(kStringTag);
      out->String(std::get<std::string>(value));
    }
  }
}

void WriteType(const TensorType& type, ByteWriter* out) {
  out->U8(static_cast<uint8_t>(type.dtype));
  out->Ints(type.shape);
}

StatusOr<TensorType> ReadType(ByteReader* in) {
  AG_LET(const uint8_t dtype, in->U8());
  AG_LET(const Ints sizes, in->Ints());
  if (!IsDType(dtype)) return Err(StatusCode::kDataLoss, "no element type has number {}", dtype);
  TensorType type{static_cast<DType>(dtype), Shape(sizes.begin(), sizes.end())};
  AG_TRY(CheckType(type));
  return type;
}

std::string CanonicalBytes(const Graph& graph) {
  ByteWriter out;
  WriteCanonical(graph, &out);
  return out.Take();
}

std::string EncodeGraph(const Graph& graph) {
  ByteWriter out;
  WriteCanonical(graph, &out);
  WriteTrailer(graph, &out);
  return out.Take();
}

StatusOr<Graph> DecodeGraph(std::string_view bytes) {
  StatusOr<Graph> graph = Decoder(bytes).Decode();
  if (graph.ok()) return graph;
  // An unknown operator is kDataLoss, as every error except an ill-typed graph.
  const bool ill_typed = graph.status().code() == StatusCode::kInvalidArgument;
  return Err(ill_typed ? StatusCode::kInvalidArgument : StatusCode::kDataLoss, "graph bytes: {}",
             Message(graph.status()));
}

}  // namespace ag
