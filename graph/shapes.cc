#include "graph/shapes.h"

#include <algorithm>
#include <array>

#include "graph/resize.h"

namespace ag {
namespace {

std::string_view KindName(char kind) {
  switch (kind) {
    case 'i':
      return "int";
    case 'f':
      return "float";
    case 'L':
      return "list of ints";
    default:
      return "string";
  }
}

constexpr char kKindOfIndex[] = {'i', 'f', 'L', 's'};  // By AttributeValue::index().

Status CheckSchemas(const OpInfo& info, Attributes* attributes) {
  for (const auto& item : attributes->items()) {
    const std::string& name = item.first;
    const auto schema = std::find_if(info.attributes.begin(), info.attributes.end(),
                                     [&](const AttributeSchema& s) { return s.name == name; });
    if (schema == info.attributes.end()) {
      return Err(StatusCode::kInvalidArgument, "{}: unknown attribute '{}'", info.text_name, name);
    }
    const char kind = kKindOfIndex[item.second.index()];
    if (kind != schema->kind) {
      return Err(StatusCode::kInvalidArgument, "{}: attribute '{}': expected {}, got {}",
                 info.text_name, name, KindName(schema->kind), KindName(kind));
    }
  }
  if (attributes->items().size() == info.attributes.size()) return OkStatus();
  for (const AttributeSchema& schema : info.attributes) {
    if (attributes->Find(schema.name) != nullptr) continue;
    if (!schema.default_value.has_value()) {
      return Err(StatusCode::kInvalidArgument, "{}: attribute '{}' is missing", info.text_name,
                 schema.name);
    }
    attributes->Set(schema.name, *schema.default_value);
  }
  return OkStatus();
}

// Replaces the one -1 that reshape's shape may have.
void ResolveReshape(const TensorType& input, Attributes* attributes) {
  Ints shape = attributes->IntList("shape");
  const auto unknown = std::find(shape.begin(), shape.end(), -1);
  if (unknown == shape.end()) return;
  *unknown = 1;
  const int64_t known = NumElements(shape);
  if (known <= 0 || input.NumElements() % known != 0) return;  // The shape rule reports the error.
  *unknown = input.NumElements() / known;
  attributes->Set("shape", std::move(shape));
}

StatusOr<TensorTypes> CallRule(const ShapeCall& call) {
  static constexpr std::array<ShapeRule, kOpKindCount> kRules = {
#define OP(name, onnx_name, arity_min, arity_max, traits, attributes, shape_rule, kernel) \
  &internal::shape_rule,
#include "graph/ops.def"
#undef OP
  };
  return kRules[static_cast<size_t>(call.op)](call);
}

Status CheckArity(const OpInfo& info, size_t count) {
  const auto n = static_cast<int64_t>(count);
  if (n >= info.arity_min && (info.arity_max < 0 || n <= info.arity_max)) return OkStatus();
  const std::string_view more = info.arity_max < 0 ? " or more" : "";
  return Err(StatusCode::kInvalidArgument, "{}: expected {}{} operands, got {}", info.text_name,
             info.arity_min, more, n);
}

}  // namespace

Status CompleteAttributes(OpKind op, std::span<const TensorType> inputs, Attributes* attributes) {
  const OpInfo& info = Info(op);
  AG_TRY(CheckArity(info, inputs.size()));
  AG_TRY(CheckSchemas(info, attributes));
  if (Has(op, kReduction)) {
    Ints axes = attributes->IntList("axes");
    if (!std::is_sorted(axes.begin(), axes.end())) {
      std::sort(axes.begin(), axes.end());
      attributes->Set("axes", std::move(axes));
    }
  }
  if (op == OpKind::kReshape && inputs.size() == 1) ResolveReshape(inputs[0], attributes);
  if (op == OpKind::kResize) CompleteResize(inputs[0].shape, attributes);
  return OkStatus();
}

StatusOr<TensorTypes> InferTypes(OpKind op, std::span<const TensorType> inputs,
                                 const Attributes& attributes) {
  const OpInfo& info = Info(op);
  for (const TensorType& input : inputs) {
    if (input.dtype == DType::kString || IsNarrow(input.dtype)) {
      return Err(StatusCode::kInvalidArgument, "{}: cannot compute on {}", info.text_name,
                 DTypeName(input.dtype));
    }
  }
  StatusOr<TensorTypes> types = CallRule({op, attributes, inputs});
  if (!types.ok()) return Within(types.status(), info.text_name);
  for (const TensorType& type : *types) AG_TRY(CheckType(type), "{}", info.text_name);
  return types;
}

Status CheckAxis(int64_t axis, size_t rank) {
  if (axis >= 0 && axis < static_cast<int64_t>(rank)) return OkStatus();
  return Err(StatusCode::kInvalidArgument, "axis {} is outside [0, {})", axis, rank);
}

StatusOr<Shape> BroadcastShapes(std::span<const int64_t> a, std::span<const int64_t> b) {
  if (a.size() < b.size()) std::swap(a, b);
  Shape shape(a.begin(), a.end());
  const size_t offset = a.size() - b.size();
  for (size_t i = 0; i < b.size(); ++i) {
    int64_t& size = shape[offset + i];
    if (size == b[i] || b[i] == 1) continue;
    if (size != 1) {
      return Err(StatusCode::kInvalidArgument, "{} and {} do not broadcast", ShapeToString(a),
                 ShapeToString(b));
    }
    size = b[i];
  }
  return shape;
}

}  // namespace ag
