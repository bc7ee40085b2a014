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
constexpr std::array<Row, 14> kRows = {{
    {1, DType::kFloat32},
    {2, DType::kUInt8},
    {3, DType::kInt8},
    {4, DType::kUInt16},
    {5, DType::kInt16},
    {6, DType::kInt32},
    {7, DType::kInt64},
    {8, DType::kString},
    {9, DType::kBool},
    {10, DType::kFloat16},
    {11, DType::kFloat64},
    {12, DType::kUInt32},
    {13, DType::kUInt64},
    {16, DType::kBFloat16},
}};

}  // namespace

StatusOr<DType> DTypeFromOnnx(int32_t data_type) {
  for (const Row& row : kRows) {
    if (row.onnx == data_type) return row.dtype;
  }
  return Err(StatusCode::kUnimplemented, "element type {} of ONNX is not supported", data_type);
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
    return Err(StatusCode::kUnimplemented, "{}: strings are not supported", noun);
  }
  if (static_cast<uint64_t>(type.Bytes()) != tensor.bytes.size()) {
    return Err(StatusCode::kInvalidArgument, "{}: {} needs {} bytes, the model has {}", noun,
               type.ToString(), type.Bytes(), tensor.bytes.size());
  }
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
  return result;
}

std::string Quoted(std::string_view name) {
  constexpr size_t kShownMax = 120;
  const std::string_view shown = name.substr(0, kShownMax);
  return fmt::format("\"{}{}\"", absl::CHexEscape({shown.data(), shown.size()}),
                     name.size() > kShownMax ? "..." : "");
}

}  // namespace ag
