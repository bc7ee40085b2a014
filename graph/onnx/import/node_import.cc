#include "graph/onnx/import/node_import.h"

#include <algorithm>

namespace ag {
NodeImport::NodeImport(const OnnxNode& node, int64_t opset, Importer& importer)
    : NodeAttributes(node),
      opset_(opset),
      importer_(importer),
      results_(node.outputs.size(), kNoValue) {
  for (const std::string& name : node.inputs) {
    inputs_.push_back(name.empty() ? kNoValue : importer.Find(name));
  }
}

Status NodeImport::CheckInputs(size_t low, size_t high) const {
  size_t present = 0;
  while (present < inputs_.size() && inputs_[present] != kNoValue) ++present;
  if (present >= low && inputs_.size() <= high) return OkStatus();
  const std::string expected =
      low == high ? fmt::format("{}", low) : fmt::format("{} to {}", low, high);
  return Err(StatusCode::kInvalidArgument, "expected {} inputs, got {}", expected,
             present < low ? present : inputs_.size());
}

StatusOr<const Tensor*> NodeImport::KnownTensor(size_t i) const {
  if (!Has(i)) return Err(StatusCode::kInvalidArgument, "input {} is missing", i);
  const Tensor* tensor = Known(In(i));
  if (tensor != nullptr) return tensor;
  return Err(StatusCode::kUnimplemented, "input {} is not known before the model runs", i);
}

StatusOr<Ints> NodeImport::KnownInts(size_t i) const {
  AG_LET(const Tensor* const tensor, KnownTensor(i));
  StatusOr<Ints> ints = IntsOf(*tensor);
  AG_TRY(ints, "input {}", i);
  return ints;
}

StatusOr<std::vector<float>> NodeImport::KnownFloats(size_t i) const {
  AG_LET(const Tensor* const tensor, KnownTensor(i));
  if (tensor->type().dtype != DType::kFloat32) {
    return Err(StatusCode::kInvalidArgument, "input {}: expected f32, got {}", i,
               tensor->type().ToString());
  }
  const auto values = tensor->As<float>();
  return std::vector<float>(values.begin(), values.end());
}

StatusOr<double> NodeImport::KnownScalar(size_t i) const {
  AG_LET(const Tensor* const tensor, KnownTensor(i));
  if (tensor->type().NumElements() != 1 || tensor->type().dtype == DType::kString) {
    return Err(StatusCode::kInvalidArgument, "input {}: expected one number, got {}", i,
               tensor->type().ToString());
  }
  const double value = tensor->At(0);
  if (IsInteger(tensor->type().dtype) &&
      Tensor::FromDoubles(tensor->type(), {&value, 1}).bytes() != tensor->bytes()) {
    return Err(StatusCode::kUnimplemented, "input {}: an integer that no double holds", i);
  }
  return value;
}

StatusOr<int64_t> NodeImport::KnownInt(size_t i) const {
  AG_LET(const Ints ints, KnownInts(i));
  if (ints.size() == 1) return ints[0];
  return Err(StatusCode::kInvalidArgument, "input {}: expected one number, got {}", i,
             Type(In(i)).ToString());
}

StatusOr<ValueId> NodeImport::Emit(OpKind op, std::initializer_list<ValueId> inputs,
                                   Attributes attributes) {
  AG_LET(const std::vector<ValueId> values,
         importer_.AddNode(op, std::vector<ValueId>(inputs), std::move(attributes)));
  return values[0];
}

StatusOr<std::vector<ValueId>> NodeImport::EmitAll(OpKind op, std::span<const ValueId> inputs,
                                                   Attributes attributes) {
  return importer_.AddNode(op, inputs, std::move(attributes));
}

StatusOr<ValueId> NodeImport::Sequence(std::vector<ValueId> items) {
  for (const ValueId item : items) {
    if (!IsTensor(item)) {
      return Err(StatusCode::kInvalidArgument, "an item is {}: sequences hold tensors only",
                 KindName(importer_.kind(item)));
    }
    if (Type(item).dtype == Type(items[0]).dtype) continue;
    return Err(StatusCode::kInvalidArgument, "a sequence of {} gets an item of {}",
               DTypeName(Type(items[0]).dtype), DTypeName(Type(item).dtype));
  }
  return importer_.AddItems(OnnxKind::kSequence, std::move(items));
}

StatusOr<ValueId> NodeImport::Filled(const TensorType& type, double value) {
  if (type.Bytes() > importer_.limits().tensor_bytes_max) {
    return Err(StatusCode::kResourceExhausted, "{} has {} bytes, the limit is {} a tensor",
               type.ToString(), type.Bytes(), importer_.limits().tensor_bytes_max);
  }
  if (type.dtype == DType::kString) {
    return Err(StatusCode::kInvalidArgument, "cannot compute on strings");
  }
  Tensor tensor = Tensor::Zeros(type);
  for (int64_t i = 0; value != 0 && i < type.NumElements(); ++i) tensor.Put(i, value);
  return Constant(tensor);
}

StatusOr<ValueId> NodeImport::Scalar(DType dtype, double value) {
  return Filled({dtype, {}}, value);
}

StatusOr<ValueId> NodeImport::Reshape(ValueId value, std::span<const int64_t> shape) {
  if (std::equal(shape.begin(), shape.end(), ShapeOf(value).begin(), ShapeOf(value).end())) {
    return value;
  }
  return Emit(OpKind::kReshape, {value}, {{"shape", Ints(shape.begin(), shape.end())}});
}

Status NodeImport::OnlyFirstOutput() const {
  for (size_t i = 1; i < node().outputs.size(); ++i) {
    if (Wants(i)) return Err(StatusCode::kUnimplemented, "output {} is not supported", i);
  }
  return OkStatus();
}

Status NodeImport::Out(StatusOr<ValueId> value) {
  AG_TRY(value.status());
  if (!results_.empty()) results_[0] = *value;
  return OkStatus();
}

void NodeImport::Out(size_t i, ValueId value) {
  if (i < results_.size()) results_[i] = value;
}

Status NodeImport::OutAll(const std::vector<ValueId>& values) {
  if (values.size() != results_.size()) {
    return Err(StatusCode::kInvalidArgument, "expected {} outputs, got {}", values.size(),
               results_.size());
  }
  results_ = values;
  return OkStatus();
}

}  // namespace ag
