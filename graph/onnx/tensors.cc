#include <absl/strings/escaping.h>

#include <algorithm>
#include <array>

#include "graph/onnx/wire.h"

namespace ag {
namespace {

struct Row {
  int32_t onnx;
  DType dtype;
};

// TensorProto.DataType and the element type of the IR.
constexpr std::array<Row, 21> kRows = {{
    {1, DType::kFloat32},         {2, DType::kUInt8},       {3, DType::kInt8},
    {4, DType::kUInt16},          {5, DType::kInt16},       {6, DType::kInt32},
    {7, DType::kInt64},           {8, DType::kString},      {9, DType::kBool},
    {10, DType::kFloat16},        {11, DType::kFloat64},    {12, DType::kUInt32},
    {13, DType::kUInt64},         {16, DType::kBFloat16},   {17, DType::kFloat8E4M3},
    {18, DType::kFloat8E4M3Fnuz}, {19, DType::kFloat8E5M2}, {20, DType::kFloat8E5M2Fnuz},
    {21, DType::kUInt4},          {22, DType::kInt4},       {23, DType::kFloat4E2M1},
}};

// Whether ONNX puts two elements into a byte, the first into its low bits.
bool HasHalfBytes(DType dtype) {
  return dtype == DType::kUInt4 || dtype == DType::kInt4 || dtype == DType::kFloat4E2M1;
}

// Returns one element per byte. REQUIRES: as many bytes as the elements need.
Tensor Unpacked(const TensorType& type, std::string_view bytes) {
  Tensor tensor = Tensor::Zeros(type);
  const auto out = tensor.Mutable<uint8_t>();
  for (size_t i = 0; i < out.size(); ++i) {
    const auto byte = static_cast<uint8_t>(bytes[i / 2]);
    const int half = i % 2 == 0 ? byte & 0xF : byte >> 4;
    const bool is_negative = type.dtype == DType::kInt4 && half >= 8;
    out[i] = static_cast<uint8_t>(is_negative ? half - 16 : half);
  }
  return tensor;
}

std::string Packed(std::string_view elements) {
  std::string bytes((elements.size() + 1) / 2, '\0');
  for (size_t i = 0; i < elements.size(); ++i) {
    const int half = elements[i] & 0xF;
    bytes[i / 2] = static_cast<char>(bytes[i / 2] | (i % 2 == 0 ? half : half << 4));
  }
  return bytes;
}

}  // namespace

ModelValue::ModelValue() = default;
ModelValue::ModelValue(Tensor value) : tensor(std::move(value)) {}
ModelValue::ModelValue(OnnxKind kind_given, std::vector<ModelValue> items_given)
    : kind(kind_given), items(std::move(items_given)) {}

std::string_view KindName(OnnxKind kind) {
  switch (kind) {
    case OnnxKind::kTensor:
      return "a tensor";
    case OnnxKind::kSequence:
      return "a sequence";
    case OnnxKind::kOptional:
      return "an optional";
    case OnnxKind::kOther:
      break;
  }
  return "neither a tensor nor a sequence or an optional of tensors";
}

std::string ToString(const ValueForm& form) {
  if (form.kind == OnnxKind::kTensor) return form.item.ToString();
  if (form.kind == OnnxKind::kOther) return std::string(KindName(form.kind));
  const bool is_optional = form.kind == OnnxKind::kOptional;
  return fmt::format("{} {}of {}", is_optional ? "an optional" : "a sequence",
                     is_optional && form.holds_sequence ? "sequence " : "",
                     DTypeName(form.item.dtype));
}

ModelValue MakeValue(const ValueForm& form, std::vector<Tensor> tensors) {
  if (form.kind == OnnxKind::kTensor) return std::move(tensors.at(0));
  std::vector<ModelValue> items(tensors.begin(), tensors.end());
  if (form.kind == OnnxKind::kOptional && form.holds_sequence) {
    ModelValue sequence(OnnxKind::kSequence, std::move(items));
    items = {std::move(sequence)};
  }
  return {form.kind, std::move(items)};
}

std::vector<Tensor> TensorsIn(const ModelValue& value) {
  if (value.kind == OnnxKind::kTensor) return {value.tensor};
  std::vector<Tensor> tensors;
  for (const ModelValue& item : value.items) {
    for (Tensor& tensor : TensorsIn(item)) tensors.push_back(std::move(tensor));
  }
  return tensors;
}

Status CheckForm(const ModelValue& value, const ValueForm& form) {
  const auto differs = [&](std::string_view what) {
    return Err(StatusCode::kInvalidArgument, "expected {}, got {}", ToString(form), what);
  };
  if (value.kind != form.kind) return differs(KindName(value.kind));
  if (value.kind == OnnxKind::kTensor) {
    const TensorType& type = value.tensor.type();
    return type.dtype == form.item.dtype ? OkStatus() : differs(type.ToString());
  }
  const bool is_optional = form.kind == OnnxKind::kOptional;
  if (is_optional && value.items.size() > 1) return differs("an optional of several values");
  ValueForm item{.item = form.item};
  if (is_optional && form.holds_sequence) {
    item.kind = OnnxKind::kSequence;
    item.holds_sequence = true;
  }
  for (const ModelValue& one : value.items) {
    if (!CheckForm(one, item).ok()) {
      const bool is_tensor = one.kind == OnnxKind::kTensor;
      return differs(is_tensor ? "one with " + one.tensor.type().ToString()
                               : "one with " + std::string(KindName(one.kind)));
    }
  }
  return OkStatus();
}

StatusOr<DType> DTypeFromOnnx(int32_t data_type) {
  for (const Row& row : kRows) {
    if (row.onnx == data_type) return row.dtype;
  }
  static constexpr std::pair<int32_t, std::string_view> kNames[] = {
      {0, "UNDEFINED"}, {14, "COMPLEX64"}, {15, "COMPLEX128"}, {24, "FLOAT8E8M0"},
      {25, "UINT2"},    {26, "INT2"},      {27, "FLOAT6E2M3"}, {28, "FLOAT6E3M2"}};
  const auto* name =
      std::ranges::find(kNames, data_type, [](const auto& row) { return row.first; });
  return Err(StatusCode::kUnimplemented, "element type {}{} of ONNX is not supported", data_type,
             name == std::end(kNames) ? "" : fmt::format(" ({})", name->second));
}

int32_t DTypeToOnnx(DType dtype) {
  const auto row = std::find_if(kRows.begin(), kRows.end(),
                                [&](const Row& candidate) { return candidate.dtype == dtype; });
  AG_CHECK(row != kRows.end());
  return row->onnx;
}

StatusOr<Tensor> ToTensor(const OnnxTensor& tensor) {
  const std::string noun = fmt::format("tensor {}", Quoted(tensor.name));
  if (tensor.external.has_value()) {
    return Err(StatusCode::kInvalidArgument,
               "{} has its data in another file, {}, and only the model's own bytes came: give the "
               "model by its path with that file beside it, or save it with its weights inside",
               noun, Quoted(tensor.external->location));
  }
  const StatusOr<DType> dtype = DTypeFromOnnx(tensor.data_type);
  AG_TRY(dtype, "{}", noun);
  TensorType type{*dtype, Shape(tensor.dims.begin(), tensor.dims.end())};
  AG_TRY(CheckType(type), "{}", noun);
  if (*dtype == DType::kString) {
    if (!BytesFit(type, tensor.bytes)) {
      return Err(StatusCode::kInvalidArgument, "{}: {} and the number of strings in it differ",
                 noun, type.ToString());
    }
    return Tensor::View(std::move(type), tensor.bytes, tensor.owned);
  }
  const int64_t bytes = HasHalfBytes(*dtype) ? (type.NumElements() + 1) / 2 : type.Bytes();
  if (static_cast<uint64_t>(bytes) != tensor.bytes.size()) {
    return Err(StatusCode::kInvalidArgument, "{}: {} needs {} bytes, the model has {}", noun,
               type.ToString(), bytes, tensor.bytes.size());
  }
  if (HasHalfBytes(*dtype)) return Unpacked(type, tensor.bytes);
  if (*dtype == DType::kBool && std::any_of(tensor.bytes.begin(), tensor.bytes.end(),
                                            [](char c) { return c != 0 && c != 1; })) {
    return Err(StatusCode::kInvalidArgument, "{}: a bool is neither 0 nor 1", noun);
  }
  // Copies small tensors: other code reads their elements, which must be aligned.
  constexpr size_t kCopiedBytesMax = 64 << 10;
  if (tensor.bytes.size() <= kCopiedBytesMax)
    return Tensor::FromBytes(std::move(type), tensor.bytes);
  return Tensor::View(std::move(type), tensor.bytes, tensor.owned);
}

OnnxTensor FromTensor(std::string name, const Tensor& tensor) {
  OnnxTensor result{.name = std::move(name), .data_type = DTypeToOnnx(tensor.type().dtype)};
  result.dims.assign(tensor.type().shape.begin(), tensor.type().shape.end());
  result.bytes = tensor.bytes();
  if (HasHalfBytes(tensor.type().dtype)) {
    result.owned = std::make_shared<const std::string>(Packed(tensor.bytes()));
    result.bytes = *result.owned;
  }
  return result;
}

std::string Quoted(std::string_view name) {
  constexpr size_t kShownMax = 120;
  const std::string_view shown = name.substr(0, kShownMax);
  return fmt::format("\"{}{}\"", absl::CHexEscape({shown.data(), shown.size()}),
                     name.size() > kShownMax ? "..." : "");
}

}  // namespace ag
