#include <map>

#include "base/file.h"
#include "base/text.h"
#include "client/cli/local_model.h"

namespace ag {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);

const std::map<std::string, DType>& NpyTypes() {
  static const std::map<std::string, DType> types = {
      {"<f4", DType::kFloat32}, {"<f2", DType::kFloat16}, {"<f8", DType::kFloat64},
      {"<i8", DType::kInt64},   {"<i4", DType::kInt32},   {"<i2", DType::kInt16},
      {"|i1", DType::kInt8},    {"|u1", DType::kUInt8},   {"|b1", DType::kBool},
      {"<u2", DType::kUInt16},  {"<u4", DType::kUInt32},  {"<u8", DType::kUInt64},
  };
  return types;
}

// The text between `begin` and `end` after `key` in the header's dictionary.
StatusOr<std::string> Field(const std::string& header, const std::string& key, char begin,
                            char end) {
  const size_t at = header.find("'" + key + "'");
  const size_t open = at == std::string::npos ? at : header.find(begin, at + key.size() + 2);
  const size_t close = open == std::string::npos ? open : header.find(end, open + 1);
  if (close == std::string::npos) {
    return Err(StatusCode::kInvalidArgument, "npy header has no {}", key);
  }
  return header.substr(open + 1, close - open - 1);
}

StatusOr<TensorType> ParseHeader(const std::string& header) {
  AG_LET(const std::string descr, Field(header, "descr", '\'', '\''));
  AG_LET(const std::string shape, Field(header, "shape", '(', ')'));
  if (header.find("'fortran_order': True") != std::string::npos) {
    return Err(StatusCode::kUnimplemented,
               "npy in Fortran order; save it with np.ascontiguousarray");
  }
  const auto dtype = NpyTypes().find(descr);
  if (dtype == NpyTypes().end()) {
    return Err(StatusCode::kUnimplemented, "npy element type {}", descr);
  }
  TensorType type{dtype->second, {}};
  for (const auto part : Split(shape, ',')) {
    if (Trim(part).empty()) continue;
    AG_LET(const int64_t size, ParseInt(Trim(part)));
    if (size < 0) return Err(StatusCode::kInvalidArgument, "npy shape ({})", shape);
    type.shape.push_back(size);
  }
  return type;
}

}  // namespace

StatusOr<Tensor> ReadNpy(const std::string& bytes) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  if (bytes.size() < 12 || std::string_view(bytes).substr(0, 6) != kMagic) {
    return Err(StatusCode::kInvalidArgument, "not a npy file");
  }
  const bool long_header = byte(6) >= 2;
  size_t length = byte(8) | byte(9) << 8;
  if (long_header)
    length |= static_cast<size_t>(byte(10)) << 16 | static_cast<size_t>(byte(11)) << 24;
  const size_t begin = long_header ? 12 : 10;
  if (begin + length > bytes.size())
    return Err(StatusCode::kInvalidArgument, "npy file is truncated");
  AG_LET(const TensorType type, ParseHeader(bytes.substr(begin, length)));
  const std::string_view data = std::string_view(bytes).substr(begin + length);
  if (static_cast<int64_t>(data.size()) != type.Bytes()) {
    return Err(StatusCode::kInvalidArgument, "npy file has {} bytes of data, {} needs {}",
               data.size(), type.ToString(), type.Bytes());
  }
  Tensor tensor = Tensor::Zeros(type);
  const auto out = tensor.Mutable<char>();
  std::copy(data.begin(), data.end(), out.begin());
  return tensor;
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
  // Data begin at a multiple of 64 bytes; the header ends with a newline.
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
