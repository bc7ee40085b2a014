#include "graph/onnx/node_attributes.h"

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

const OnnxAttribute* NodeAttributes::Find(std::string_view name) {
  asked_.emplace(name);
  const auto found = std::find_if(node_.attributes.begin(), node_.attributes.end(),
                                  [&](const OnnxAttribute& a) { return a.name == name; });
  return found == node_.attributes.end() ? nullptr : &*found;
}

const OnnxAttribute* NodeAttributes::FindTyped(std::string_view name, OnnxAttributeType type) {
  const OnnxAttribute* attribute = Find(name);
  if (attribute == nullptr || attribute->type == type) return attribute;
  if (attribute_error_.ok()) {
    attribute_error_ =
        Err(StatusCode::kInvalidArgument, "attribute {}: expected type {}, got type {}",
            Quoted(name), static_cast<int>(type), static_cast<int>(attribute->type));
  }
  return nullptr;
}

int64_t NodeAttributes::Int(std::string_view name, int64_t otherwise) {
  const OnnxAttribute* attribute = FindTyped(name, OnnxAttributeType::kInt);
  return attribute == nullptr ? otherwise : attribute->i;
}

double NodeAttributes::Float(std::string_view name, double otherwise) {
  const OnnxAttribute* attribute = FindTyped(name, OnnxAttributeType::kFloat);
  return attribute == nullptr ? otherwise : AsWritten(attribute->f);
}

std::string NodeAttributes::String(std::string_view name, std::string_view otherwise) {
  const OnnxAttribute* attribute = FindTyped(name, OnnxAttributeType::kString);
  return attribute == nullptr ? std::string(otherwise) : attribute->s;
}

std::optional<Ints> NodeAttributes::IntList(std::string_view name) {
  const OnnxAttribute* attribute = FindTyped(name, OnnxAttributeType::kInts);
  if (attribute == nullptr) return std::nullopt;
  return attribute->ints;
}

std::optional<std::vector<float>> NodeAttributes::FloatList(std::string_view name) {
  const OnnxAttribute* attribute = FindTyped(name, OnnxAttributeType::kFloats);
  if (attribute == nullptr) return std::nullopt;
  return attribute->floats;
}

std::optional<std::vector<std::string>> NodeAttributes::StringList(std::string_view name) {
  const OnnxAttribute* attribute = FindTyped(name, OnnxAttributeType::kStrings);
  if (attribute == nullptr) return std::nullopt;
  return attribute->strings;
}

Status NodeAttributes::CheckAttributes() const {
  AG_TRY(attribute_error_);
  for (const OnnxAttribute& attribute : node_.attributes) {
    if (!asked_.contains(attribute.name)) {
      return Err(StatusCode::kUnimplemented, "attribute {} is not supported",
                 Quoted(attribute.name));
    }
  }
  return OkStatus();
}

StatusOr<int64_t> ResolveAxis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) {
    return Err(StatusCode::kInvalidArgument, "axis {} is outside [{}, {})", axis, -rank, rank);
  }
  return axis < 0 ? axis + rank : axis;
}

StatusOr<Ints> ResolveAxes(Ints axes, int64_t rank) {
  for (int64_t& axis : axes) {
    AG_LET(axis, ResolveAxis(axis, rank));
  }
  return axes;
}

StatusOr<Ints> IntsOf(const Tensor& tensor) {
  if (tensor.type().dtype == DType::kInt64) {
    const auto values = tensor.As<int64_t>();
    return Ints(values.begin(), values.end());
  }
  if (tensor.type().dtype == DType::kInt32) {
    const auto values = tensor.As<int32_t>();
    return Ints(values.begin(), values.end());
  }
  return Err(StatusCode::kInvalidArgument, "expected i64 or i32, got {}", tensor.type().ToString());
}

}  // namespace ag
