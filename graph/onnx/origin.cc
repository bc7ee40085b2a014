#include "graph/onnx/origin.h"

#include "base/fields.h"
#include "graph/codec.h"

namespace ag {
namespace {

constexpr uint32_t kOriginVersion = 5;

std::string EncodeType(const TensorType& type) {
  ByteWriter out;
  WriteType(type, &out);
  return out.Take();
}

StatusOr<TensorType> DecodeType(std::string_view bytes) {
  ByteReader in(bytes);
  AG_LET(TensorType type, ReadType(&in));
  AG_TRY(in.End());
  return type;
}

}  // namespace

void Fields(auto& io, Is<DynamicPart::Weight> auto& weight) {
  io(weight.name);
  io.Nested(weight.type, EncodeType, DecodeType);
  io(weight.digest);
}

void Fields(auto& io, Is<DynamicPart::Input> auto& input) {
  io(input.position, input.name);
  io.Nested(input.type, EncodeType, DecodeType);
  io(input.proto);
}

void Fields(auto& io, Is<DynamicPart> auto& part) {
  io(part.inputs, part.nodes, part.functions, part.weights, part.outputs, part.no_kernel);
}

void Fields(auto& io, Is<NodeNames> auto& names) { io(names.node, names.values, names.notes); }

void Fields(auto& io, Is<QuantAnnotation> auto& annotation) {
  io(annotation.tensor, annotation.parameters);
}

void Fields(auto& io, Is<OnnxOrigin> auto& origin) {
  io(origin.ir_version, origin.opsets, origin.producer_name, origin.producer_version, origin.domain,
     origin.doc_string, origin.graph_name, origin.model_version, origin.metadata, origin.dim_names,
     origin.dynamic, origin.names, origin.graph_notes, origin.notes, origin.stated,
     origin.annotations, origin.annotation_weights);
}

std::string EncodeOrigin(const OnnxOrigin& origin) {
  ByteWriter head;
  head.U32(kOriginVersion);
  return EncodeFields(origin, std::move(head));
}

StatusOr<OnnxOrigin> DecodeOrigin(std::string_view bytes) {
  ByteReader in(bytes);
  AG_LET(const uint32_t version, in.U32());
  if (version == kOriginVersion) return DecodeFields<OnnxOrigin>(in);
  return Err(StatusCode::kDataLoss, "origin: expected version {}, got {}", kOriginVersion, version);
}

}  // namespace ag
