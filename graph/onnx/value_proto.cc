#include "graph/onnx/tensor_proto.h"
#include "graph/onnx/wire.h"

namespace ag {
namespace {

// Field numbers of SequenceProto and OptionalProto, equal in both.
constexpr uint32_t kElementType = 2, kTensorValues = 3, kSequenceValues = 5;

}  // namespace

StatusOr<ModelValue> ParseValueProto(std::string_view bytes, OnnxKind kind) {
  if (kind == OnnxKind::kTensor) {
    AG_LET(Tensor tensor, ParseTensorProto(bytes));
    return ModelValue(std::move(tensor));
  }
  std::vector<ModelValue> items;
  bool has_value = true;
  AG_TRY(ForEachField(bytes, [&](const WireField& field) -> Status {
    if (field.number == kElementType) has_value = field.whole.back() != 0;
    if (field.number != kTensorValues && field.number != kSequenceValues) return OkStatus();
    const bool is_tensor = field.number == kTensorValues;
    if (!is_tensor && kind == OnnxKind::kSequence) {
      return Err(StatusCode::kInvalidArgument, "a sequence of sequences");
    }
    AG_LET(ModelValue item,
           ParseValueProto(field.payload, is_tensor ? OnnxKind::kTensor : OnnxKind::kSequence));
    items.push_back(std::move(item));
    return OkStatus();
  }));
  if (!has_value) items.clear();  // An optional of nothing may still hold an empty message.
  return ModelValue(kind, std::move(items));
}

}  // namespace ag
