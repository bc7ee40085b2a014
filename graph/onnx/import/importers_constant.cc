// Importers of constants, and of operators that become constants: with static shapes a Shape is a
// known value.
#include <algorithm>
#include <cstring>

#include "graph/onnx/import/node_import.h"
#include "graph/onnx/import/sparse.h"

namespace ag {
namespace {

// Larger results stay operators.
constexpr int64_t kComputedBytesMax = 64 << 10;

// Returns the strings of a constant that is written as attributes.
std::optional<std::vector<std::string>> StringsOf(NodeImport& node) {
  if (!node.HasAttribute("value_string")) return node.StringList("value_strings");
  return std::vector{node.String("value_string", "")};
}

Status ImportConstant(NodeImport& node) {
  if (const OnnxAttribute* value = node.Find("value"); value != nullptr && value->tensor) {
    AG_LET(const Tensor tensor, ToTensor(*value->tensor));
    return node.Out(node.Constant(tensor));
  }
  if (const OnnxAttribute* value = node.Find("sparse_value"); value != nullptr && value->sparse) {
    AG_LET(const OnnxTensor dense, Densify(*value->sparse, node.importer().limits()));
    AG_LET(const Tensor tensor, ToTensor(dense));
    return node.Out(node.Constant(tensor));
  }
  const OnnxAttribute* number = node.Find("value_float");
  const OnnxAttribute* list = node.Find("value_floats");
  Tensor tensor;
  if (number != nullptr) {
    tensor = Tensor::FromFloats({}, {&number->f, 1});
  } else if (list != nullptr) {
    tensor = Tensor::FromFloats({static_cast<int64_t>(list->floats.size())}, list->floats);
  } else if (node.HasAttribute("value_int")) {
    const int64_t value = node.Int("value_int", 0);
    tensor = Tensor::FromInts({}, {&value, 1});
  } else if (const std::optional<Ints> values = node.IntList("value_ints")) {
    tensor = Tensor::FromInts({static_cast<int64_t>(values->size())}, *values);
  } else if (const auto texts = StringsOf(node)) {
    const bool is_scalar = node.HasAttribute("value_string");
    const Shape shape = is_scalar ? Shape() : Shape{static_cast<int64_t>(texts->size())};
    tensor = Tensor::FromStrings(shape, *texts);
  } else {
    return Err(StatusCode::kUnimplemented, "this form of constant is not supported");
  }
  return node.Out(node.Constant(tensor));
}

StatusOr<TensorType> CheckedType(DType dtype, std::span<const int64_t> sizes) {
  TensorType type{dtype, Shape(sizes.begin(), sizes.end())};
  if (NumElements(sizes) > kElementsMax) {
    return Err(StatusCode::kResourceExhausted, "{} has more than 2^40 elements", type.ToString());
  }
  AG_TRY(CheckType(type));
  return type;
}

// A small result becomes its elements, a large one an expand of one element.
Status ImportConstantOfShape(NodeImport& node) {
  AG_LET(const Ints sizes, node.KnownInts(0));
  Tensor element = Tensor::Zeros({DType::kFloat32, {}});
  if (const OnnxAttribute* value = node.Find("value"); value != nullptr && value->tensor) {
    AG_LET(element, ToTensor(*value->tensor));
    if (element.type().NumElements() != 1) {
      return Err(StatusCode::kInvalidArgument, "value: expected one element, got {}",
                 element.type().ToString());
    }
    if (element.type().dtype == DType::kString) {
      return Err(StatusCode::kInvalidArgument, "value: expected a number, got {}",
                 element.type().ToString());
    }
  }
  AG_LET(const TensorType type, CheckedType(element.type().dtype, sizes));
  ValueId result = kNoValue;
  if (type.Bytes() <= kComputedBytesMax) {
    Tensor tensor = Tensor::Zeros(type);
    const std::span<char> to = tensor.Mutable<char>();
    const std::string_view from = element.bytes();
    for (size_t at = 0; at < to.size(); at += from.size()) {
      std::memcpy(&to[at], from.data(), from.size());
    }
    AG_LET(result, node.Constant(tensor));
  } else {
    AG_LET(result, node.Constant(element.Retyped({type.dtype, {}})));
    AG_LET(result, node.Emit(OpKind::kExpand, {result}, {{"shape", sizes}}));
  }
  return node.Out(result);
}

Status ImportShape(NodeImport& node) {
  const Shape& shape = node.ShapeOf(node.In(0));
  const auto rank = static_cast<int64_t>(shape.size());
  const auto bound = [rank](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? std::max(at, -rank) + rank : at, 0, rank);
  };
  const int64_t start = bound(node.Int("start", 0));
  const int64_t end = std::max(bound(node.Int("end", rank)), start);
  const Ints sizes(shape.begin() + start, shape.begin() + end);
  return node.Out(node.Constant(Tensor::FromInts({end - start}, sizes)));
}

Status ImportSize(NodeImport& node) {
  const int64_t elements = node.Type(node.In(0)).NumElements();
  return node.Out(node.Constant(Tensor::FromInts({}, {&elements, 1})));
}

}  // namespace

std::span<const NodeImporterRow> ConstantImporters() {
  static constexpr NodeImporterRow kRows[] = {
      {"Constant", ImportConstant, 0, 0},
      {"ConstantOfShape", ImportConstantOfShape, 1, 1},
      {"Shape", ImportShape, 1, 1},
      {"Size", ImportSize, 1, 1},
  };
  return kRows;
}

}  // namespace ag
