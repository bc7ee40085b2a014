// A value of a model: a tensor, or one of ONNX's other kinds, made of tensors. Plain data.
#pragma once

#include <string>
#include <vector>

#include "graph/tensor.h"

namespace ag {

enum class OnnxKind : uint8_t {
  kTensor,
  kSequence,  // Of tensors.
  kOptional,  // Of a tensor or a sequence.
  kOther,     // A map, a sequence of sequences, a sparse tensor: refused everywhere.
};

// Returns "a tensor", "a sequence", ...
std::string_view KindName(OnnxKind kind);

struct ModelValue {
  OnnxKind kind = OnnxKind::kTensor;
  Tensor tensor;                  // Of kTensor.
  std::vector<ModelValue> items;  // Of a sequence; of an optional its one value, or none.

  ModelValue();
  ModelValue(Tensor value);
  ModelValue(OnnxKind kind, std::vector<ModelValue> items);
};

// What the type of a value says.
struct ValueForm {
  OnnxKind kind = OnnxKind::kTensor;
  bool holds_sequence = false;  // A sequence, or an optional of one.
  TensorType item;              // Of its tensors; f32 where it is not said, 1 for open sizes.
};

// Returns "a sequence of f32", "an optional sequence of i64", ...
std::string ToString(const ValueForm& form);

// Returns a value of this form with these tensors: an optional of a tensor has none for none.
// REQUIRES: form.kind is not kOther; one tensor for a tensor, at most one for an optional of one.
ModelValue MakeValue(const ValueForm& form, std::vector<Tensor> tensors);

// Returns the tensors in a value, in order.
std::vector<Tensor> TensorsIn(const ModelValue& value);

// kInvalidArgument: the value is not of this form, or a tensor in it has another element type.
Status CheckForm(const ModelValue& value, const ValueForm& form);

}  // namespace ag
