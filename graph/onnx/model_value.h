// A value of a model: a tensor, or one of ONNX's other kinds, made of tensors. Plain data.
#pragma once

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

}  // namespace ag
