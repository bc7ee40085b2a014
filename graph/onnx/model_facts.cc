#include "graph/onnx/model_facts.h"

#include "graph/onnx/fields.h"

namespace ag {
namespace {

// Field numbers of NodeProto, TensorProto and SparseTensorProto.
constexpr uint32_t kNodeOpType = 4;
constexpr uint32_t kTensorDims = 1, kSparseDims = 3;

// Takes a varint from the front of `in`. kInvalidArgument: it does not end.
StatusOr<uint64_t> TakeVarint(std::string_view* in) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64 && !in->empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(in->front());
    in->remove_prefix(1);
    value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
  return Err(StatusCode::kInvalidArgument, "a varint without an end");
}

// Multiplies `elements` by the dims in one field: a packed list, or a single value after its tag.
Status TakeDims(const WireField& field, int64_t* elements) {
  std::string_view dims = field.payload;
  if (!field.is_bytes) {
    dims = field.whole;
    AG_TRY(TakeVarint(&dims).status());
  }
  while (!dims.empty()) {
    AG_LET(const uint64_t dim, TakeVarint(&dims));
    if (__builtin_mul_overflow(*elements, static_cast<int64_t>(dim), elements)) {
      return Err(StatusCode::kInvalidArgument, "a tensor beyond 2^63 elements");
    }
  }
  return OkStatus();
}

Status CountTensor(std::string_view tensor, uint32_t dims, int64_t* parameters) {
  int64_t elements = 1;
  AG_TRY(ForEachField(tensor, [&](const WireField& field) {
    return field.number == dims ? TakeDims(field, &elements) : OkStatus();
  }));
  if (__builtin_add_overflow(*parameters, elements, parameters)) {
    return Err(StatusCode::kInvalidArgument, "more than 2^63 parameters");
  }
  return OkStatus();
}

Status CountNode(std::string_view node, std::map<std::string, int>* operators) {
  std::string op_type;
  AG_TRY(ForEachField(node, [&](const WireField& field) {
    if (field.number == kNodeOpType) op_type = std::string(field.payload);
    return OkStatus();
  }));
  ++(*operators)[op_type];
  return OkStatus();
}

Status CountGraph(std::string_view graph, ModelFacts* facts) {
  return ForEachField(graph, [&](const WireField& field) {
    if (field.number == kGraphInitializer) {
      return CountTensor(field.payload, kTensorDims, &facts->parameters);
    }
    if (field.number == kGraphSparseInitializer) {
      return CountTensor(field.payload, kSparseDims, &facts->parameters);
    }
    if (field.number == kGraphNode) return CountNode(field.payload, &facts->operators);
    return OkStatus();
  });
}

}  // namespace

StatusOr<ModelFacts> CountModel(std::string_view model) {
  ModelFacts facts;
  facts.file_bytes = static_cast<int64_t>(model.size());
  AG_TRY(ForEachField(model, [&](const WireField& field) {
    return field.number == kModelGraph ? CountGraph(field.payload, &facts) : OkStatus();
  }));
  return facts;
}

}  // namespace ag
