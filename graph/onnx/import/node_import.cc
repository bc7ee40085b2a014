#include "graph/onnx/import/node_import.h"

#include <algorithm>
#include <charconv>

namespace ag {
namespace {

// Returns the double with the same decimal text: for the float 1e-05f the double 1e-05, which
// operator tables and patterns contain.
double AsWritten(float value) {
  char text[64];
  const auto printed = std::to_chars(text, text + sizeof(text), value);
  double result = value;
  std::from_chars(text, printed.ptr, result);
  return result;
}

}  // namespace

NodeImport::NodeImport(const OnnxNode& node, int64_t opset, Importer& importer)
    : node_(node), opset_(opset), importer_(importer), results_(node.outputs.size(), kNoValue) {
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

StatusOr<Ints> NodeImport::KnownInts(size_t i) const {
  const Tensor* tensor = Known(In(i));
  if (tensor == nullptr) {
    return Err(StatusCode::kUnimplemented, "input {} is not known before the model runs", i);
  }
  if (tensor->type().dtype == DType::kInt64) {
    const auto values = tensor->As<int64_t>();
    return Ints(values.begin(), values.end());
  }
  if (tensor->type().dtype == DType::kInt32) {
    const auto values = tensor->As<int32_t>();
    return Ints(values.begin(), values.end());
  }
  return Err(StatusCode::kInvalidArgument, "input {}: expected i64 or i32, got {}", i,
             tensor->type().ToString());
}

StatusOr<std::vector<float>> NodeImport::KnownFloats(size_t i) const {
  const Tensor* tensor = Known(In(i));
  if (tensor == nullptr) {
    return Err(StatusCode::kUnimplemented, "input {} is not known before the model runs", i);
  }
  if (tensor->type().dtype != DType::kFloat32) {
    return Err(StatusCode::kInvalidArgument, "input {}: expected f32, got {}", i,
               tensor->type().ToString());
  }
  const auto values = tensor->As<float>();
  return std::vector<float>(values.begin(), values.end());
}

StatusOr<double> NodeImport::KnownScalar(size_t i) const {
  const Tensor* tensor = Known(In(i));
  if (tensor == nullptr) {
    return Err(StatusCode::kUnimplemented, "input {} is not known before the model runs", i);
  }
  if (tensor->type().NumElements() != 1) {
    return Err(StatusCode::kInvalidArgument, "input {}: expected one element, got {}", i,
               tensor->type().ToString());
  }
  return tensor->At(0);
}

const OnnxAttribute* NodeImport::Find(std::string_view name) {
  asked_.emplace(name);
  const auto found = std::find_if(node_.attributes.begin(), node_.attributes.end(),
                                  [&](const OnnxAttribute& a) { return a.name == name; });
  return found == node_.attributes.end() ? nullptr : &*found;
}

const OnnxAttribute* NodeImport::FindTyped(std::string_view name, OnnxAttributeType type) {
  const OnnxAttribute* attribute = Find(name);
  if (attribute == nullptr || attribute->type == type) return attribute;
  if (attribute_error_.ok()) {
    attribute_error_ =
        Err(StatusCode::kInvalidArgument, "attribute {}: expected type {}, got type {}",
            Quoted(name), static_cast<int>(type), static_cast<int>(attribute->type));
  }
  return nullptr;
}

int64_t NodeImport::Int(std::string_view name, int64_t otherwise) {
  const OnnxAttribute* attribute = FindTyped(name, OnnxAttributeType::kInt);
  return attribute == nullptr ? otherwise : attribute->i;
}

double NodeImport::Float(std::string_view name, double otherwise) {
  const OnnxAttribute* attribute = FindTyped(name, OnnxAttributeType::kFloat);
  return attribute == nullptr ? otherwise : AsWritten(attribute->f);
}

std::string NodeImport::String(std::string_view name, std::string_view otherwise) {
  const OnnxAttribute* attribute = FindTyped(name, OnnxAttributeType::kString);
  return attribute == nullptr ? std::string(otherwise) : attribute->s;
}

std::optional<Ints> NodeImport::IntList(std::string_view name) {
  const OnnxAttribute* attribute = FindTyped(name, OnnxAttributeType::kInts);
  if (attribute == nullptr) return std::nullopt;
  return attribute->ints;
}

StatusOr<int64_t> NodeImport::Axis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) {
    return Err(StatusCode::kInvalidArgument, "axis {} is outside [{}, {})", axis, -rank, rank);
  }
  return axis < 0 ? axis + rank : axis;
}

StatusOr<Ints> NodeImport::Axes(Ints axes, int64_t rank) {
  for (int64_t& axis : axes) {
    AG_LET(axis, Axis(axis, rank));
  }
  return axes;
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

StatusOr<ValueId> NodeImport::Filled(const TensorType& type, double value) {
  if (type.Bytes() > importer_.limits().tensor_bytes_max) {
    return Err(StatusCode::kResourceExhausted, "{} has {} bytes, the limit is {} a tensor",
               type.ToString(), type.Bytes(), importer_.limits().tensor_bytes_max);
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
  for (size_t i = 1; i < node_.outputs.size(); ++i) {
    if (Wants(i)) return Err(StatusCode::kUnimplemented, "output {} is not supported", i);
  }
  return OkStatus();
}

Status NodeImport::Out(StatusOr<ValueId> value) {
  AG_TRY(value.status());
  if (!results_.empty()) results_[0] = *value;
  return OkStatus();
}

Status NodeImport::OutAll(const std::vector<ValueId>& values) {
  if (values.size() != results_.size()) {
    return Err(StatusCode::kInvalidArgument, "expected {} outputs, got {}", values.size(),
               results_.size());
  }
  results_ = values;
  return OkStatus();
}

Status NodeImport::CheckAttributes() const {
  AG_TRY(attribute_error_);
  for (const OnnxAttribute& attribute : node_.attributes) {
    if (!asked_.contains(attribute.name)) {
      return Err(StatusCode::kUnimplemented, "attribute {} is not supported",
                 Quoted(attribute.name));
    }
  }
  return OkStatus();
}

}  // namespace ag
