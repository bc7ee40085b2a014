// Importers of constants, and of operators that always become constants: with static shapes a Shape
// is a known value, and so are the results of shape chains with operators that the IR lacks.
#include <cmath>
#include <cstring>

#include "graph/onnx/import/node_import.h"

namespace ag {
namespace {

// Larger results stay operators.
constexpr int64_t kComputedBytesMax = 64 << 10;

Status ImportConstant(NodeImport& node) {
  if (const OnnxAttribute* value = node.Find("value"); value != nullptr && value->tensor) {
    AG_LET(const Tensor tensor, ToTensor(*value->tensor));
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
    const Tensor scalar =
        Tensor::View({type.dtype, {}}, element.bytes(), std::make_shared<const Tensor>(element));
    AG_LET(result, node.Constant(scalar));
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

Status ImportRange(NodeImport& node) {
  double bounds[3];
  for (size_t i = 0; i < 3; ++i) {
    AG_LET(bounds[i], node.KnownScalar(i));
  }
  const double count = std::max(std::ceil((bounds[1] - bounds[0]) / bounds[2]), 0.0);
  if (!std::isfinite(count)) {
    return Err(StatusCode::kInvalidArgument, "a range of {} to {} by {} has no end", bounds[0],
               bounds[1], bounds[2]);
  }
  const DType dtype = node.Type(node.In(0)).dtype;
  if (count * static_cast<double>(SizeOf(dtype)) > kComputedBytesMax) {
    return Err(StatusCode::kResourceExhausted, "a range of {} elements passes {} bytes", count,
               kComputedBytesMax);
  }
  Tensor tensor = Tensor::Zeros({dtype, {static_cast<int64_t>(count)}});
  for (int64_t i = 0; i < tensor.type().NumElements(); ++i) {
    tensor.Put(i, bounds[0] + static_cast<double>(i) * bounds[2]);
  }
  return node.Out(node.Constant(tensor));
}

// Computes the product of all elements of a known list; exporters count elements with it.
Status ImportReduceProd(NodeImport& node) {
  const Ints axes = node.IntList("axes").value_or(Ints{0});
  const int64_t keepdims = node.Int("keepdims", 1);
  const Tensor* tensor = node.Known(node.In(0));
  if (tensor == nullptr || tensor->type().dtype != DType::kInt64 ||
      tensor->type().shape.size() != 1 || axes != Ints{0}) {
    return Err(StatusCode::kUnimplemented, "products of other than known shapes");
  }
  int64_t product = 1;
  for (const int64_t value : tensor->As<int64_t>()) {
    if (__builtin_mul_overflow(product, value, &product)) {
      return Err(StatusCode::kInvalidArgument, "the product of the sizes overflows");
    }
  }
  const Shape shape = keepdims != 0 ? Shape{1} : Shape{};
  return node.Out(node.Constant(Tensor::FromInts(shape, {&product, 1})));
}

// Computes the triangle of a known mask.
Status ImportTrilu(NodeImport& node) {
  const bool upper = node.Int("upper", 1) != 0;
  double diagonal = 0;
  if (node.Has(1)) {
    AG_LET(diagonal, node.KnownScalar(1));
  }
  const Tensor* tensor = node.Known(node.In(0));
  if (tensor == nullptr || node.Rank(node.In(0)) < 2) {
    return Err(StatusCode::kUnimplemented, "triangles of other than known matrices");
  }
  const Shape& shape = tensor->type().shape;
  const int64_t rows = shape[shape.size() - 2], columns = shape.back();
  Tensor result = Tensor::FromBytes(tensor->type(), tensor->bytes());
  for (int64_t i = 0; i < result.type().NumElements(); ++i) {
    const auto above = static_cast<double>(i % columns - i / columns % rows);
    if (upper ? above < diagonal : above > diagonal) result.Put(i, 0);
  }
  return node.Out(node.Constant(result));
}

// Returns the position in `shape` of the index tuple `indices`, counted in slices of the remaining
// axes.
StatusOr<int64_t> SliceAt(const Shape& shape, std::span<const int64_t> indices) {
  int64_t at = 0;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] < -shape[i] || indices[i] >= shape[i]) {
      return Err(StatusCode::kInvalidArgument, "index {} is outside axis {} of {}", indices[i], i,
                 ShapeToString(shape));
    }
    at = at * shape[i] + (indices[i] < 0 ? indices[i] + shape[i] : indices[i]);
  }
  return at;
}

// Puts slices into a known tensor; exporters build attention masks with it.
Status ImportScatterNd(NodeImport& node) {
  const Tensor* data = node.Known(node.In(0));
  const Tensor* indices = node.Known(node.In(1));
  const Tensor* updates = node.Known(node.In(2));
  if (data == nullptr || indices == nullptr || updates == nullptr ||
      node.String("reduction", "none") != "none") {
    return Err(StatusCode::kUnimplemented, "scatters into other than known tensors");
  }
  const Shape& shape = data->type().shape;
  const Shape& list = indices->type().shape;
  if (indices->type().dtype != DType::kInt64 || list.empty() || list.back() < 1 ||
      list.back() > static_cast<int64_t>(shape.size()) ||
      updates->type().dtype != data->type().dtype) {
    return Err(StatusCode::kInvalidArgument, "indices {} do not fit {}", indices->type().ToString(),
               data->type().ToString());
  }
  const int64_t width = list.back();
  const int64_t count = indices->type().NumElements() / width;
  const auto bytes = static_cast<size_t>(NumElements({shape.data() + width, shape.size() - width}) *
                                         SizeOf(data->type().dtype));
  if (updates->bytes().size() != count * bytes) {
    return Err(StatusCode::kInvalidArgument, "updates {} do not fit indices {}",
               updates->type().ToString(), indices->type().ToString());
  }
  Tensor result = Tensor::FromBytes(data->type(), data->bytes());
  for (int64_t i = 0; i < count && bytes > 0; ++i) {
    AG_LET(const int64_t at, SliceAt(shape, indices->As<int64_t>().subspan(i * width, width)));
    std::memcpy(&result.Mutable<char>()[at * bytes], &updates->bytes()[i * bytes], bytes);
  }
  return node.Out(node.Constant(result));
}

}  // namespace

std::span<const NodeImporterRow> ConstantImporters() {
  static constexpr NodeImporterRow kRows[] = {
      {"Constant", ImportConstant, 0, 0}, {"ConstantOfShape", ImportConstantOfShape, 1, 1},
      {"Shape", ImportShape, 1, 1},       {"Size", ImportSize, 1, 1},
      {"Range", ImportRange, 3, 3},       {"ReduceProd", ImportReduceProd, 1, 1},
      {"Trilu", ImportTrilu, 1, 2},       {"ScatterND", ImportScatterNd, 3, 3},
  };
  return kRows;
}

}  // namespace ag
