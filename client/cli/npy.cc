#include <map>

#include "base/file.h"
#include "base/text.h"
#include "client/cli/local_model.h"

namespace ag {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);

const std::map<std::string, DType>& NpyTypes() {
  static const std::map<std::string, DType> types = {
      {"<f4", DType::kFloat32},  {"<f2", DType::kFloat16}, {"<f8", DType::kFloat64},
      {"<i8", DType::kInt64},    {"<i4", DType::kInt32},   {"<i2", DType::kInt16},
      {"|i1", DType::kInt8},     {"|u1", DType::kUInt8},   {"|b1", DType::kBool},
      {"<u2", DType::kUInt16},   {"<u4", DType::kUInt32},  {"<u8", DType::kUInt64},
      {"<V2", DType::kBFloat16},  // As NumPy writes arrays of ml_dtypes.bfloat16.
  };
  return types;
}

// Returns the text after `key` in the header, which is a Python dictionary: {'descr': '<f4',
// 'fortran_order': False, 'shape': (2, 3), }.
StatusOr<std::string_view> After(std::string_view header, std::string_view key) {
  const size_t at = header.find(fmt::format("'{}'", key));
  const size_t colon = at == std::string_view::npos ? at : header.find(':', at + key.size() + 2);
  if (colon == std::string_view::npos) {
    return Err(StatusCode::kInvalidArgument, "npy header has no {}", key);
  }
  return Trim(header.substr(colon + 1));
}

// Returns the value of `key` between `begin` and `end`.
StatusOr<std::string> Field(std::string_view header, std::string_view key, char begin, char end) {
  AG_LET(const std::string_view value, After(header, key));
  const size_t close = value.empty() ? value.npos : value.find(end, 1);
  if (value.empty() || value[0] != begin || close == value.npos) {
    return Err(StatusCode::kInvalidArgument, "npy header: {} is not {}...{}", key, begin, end);
  }
  return std::string(value.substr(1, close - 1));
}

StatusOr<DType> ParseDescr(std::string_view header) {
  AG_LET(const std::string_view value, After(header, "descr"));
  if (value.starts_with("[")) {
    return Err(StatusCode::kUnimplemented, "npy of records; save one field of it");
  }
  AG_LET(const std::string descr, Field(header, "descr", '\'', '\''));
  const auto known = NpyTypes().find(descr);
  if (known != NpyTypes().end()) return known->second;
  std::string help;
  if (descr.starts_with(">"))
    help = " (big-endian); save it with .astype('<" + descr.substr(1) + "')";
  if (descr.starts_with("|O")) help = " (Python objects); save an array of numbers";
  return Err(StatusCode::kUnimplemented, "npy element type {}{}", descr, help);
}

StatusOr<TensorType> ParseHeader(std::string_view header) {
  TensorType type;
  AG_LET(type.dtype, ParseDescr(header));
  AG_LET(const std::string_view order, After(header, "fortran_order"));
  if (order.starts_with("True")) {
    return Err(StatusCode::kUnimplemented,
               "npy in Fortran order; save it with np.ascontiguousarray");
  }
  if (!order.starts_with("False")) {
    return Err(StatusCode::kInvalidArgument, "npy header: fortran_order is not True or False");
  }
  AG_LET(const std::string shape, Field(header, "shape", '(', ')'));
  for (const auto part : Split(shape, ',')) {
    if (Trim(part).empty()) continue;
    const StatusOr<int64_t> size = ParseInt(Trim(part));
    AG_TRY(size, "npy shape ({})", shape);
    type.shape.push_back(*size);
  }
  AG_TRY(CheckType(type), "npy shape ({})", shape);
  return type;
}

}  // namespace

StatusOr<Tensor> ReadNpy(const std::string& bytes) {
  const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<uint8_t>(bytes[i])); };
  if (!bytes.starts_with(kMagic)) return Err(StatusCode::kInvalidArgument, "not a npy file");
  const bool has_version = bytes.size() >= 8;
  if (has_version && (byte(6) < 1 || byte(6) > 3)) {
    return Err(StatusCode::kUnimplemented, "npy version {}.{}; 1, 2 and 3 are read", byte(6),
               byte(7));
  }
  const size_t begin = has_version && byte(6) >= 2 ? 12 : 10;
  if (bytes.size() < begin) return Err(StatusCode::kInvalidArgument, "npy file is truncated");
  size_t length = byte(8) | byte(9) << 8;
  if (begin == 12) length |= byte(10) << 16 | byte(11) << 24;
  if (length > bytes.size() - begin) {
    return Err(StatusCode::kInvalidArgument, "npy file is truncated");
  }
  const std::string_view whole(bytes);
  AG_LET(const TensorType type, ParseHeader(whole.substr(begin, length)));
  const std::string_view data = whole.substr(begin + length);
  if (static_cast<int64_t>(data.size()) != type.Bytes()) {
    return Err(StatusCode::kInvalidArgument, "npy file has {} bytes of data, {} needs {}",
               data.size(), type.ToString(), type.Bytes());
  }
  return Tensor::FromBytes(type, data);
}

Status WriteNpy(const std::string& path, const Tensor& tensor) {
  std::string descr;
  for (const auto& [name, dtype] : NpyTypes()) {
    if (dtype == tensor.type().dtype) descr = name;
  }
  if (descr.empty()) {
    return Err(StatusCode::kUnimplemented, "{}: npy cannot hold {}", path,
               tensor.type().ToString());
  }
  std::string shape;
  for (const int64_t size : tensor.type().shape) shape += fmt::format("{}, ", size);
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, shape);
  // The data begins at a multiple of 64 bytes; the header ends with a newline.
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string bytes(kMagic);
  bytes += std::string("\x01\x00", 2);
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  bytes += header;
  bytes += std::string(tensor.bytes());
  return WriteFileAtomically(path, bytes);
}

}  // namespace ag
