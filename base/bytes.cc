#include "base/bytes.h"

#include <absl/strings/escaping.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace ag {
namespace {

// Values are copied as they lie in memory; a big-endian port would swap bytes in Append and Load.
static_assert(std::endian::native == std::endian::little);
static_assert(std::numeric_limits<double>::is_iec559);

constexpr uint32_t kHostFaultBit = 0x100;  // Beside the code of a status.

constexpr uint64_t kNanBits = 0x7ff8000000000000;

template <class T>
void Append(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

template <class T>
T Load(std::string_view bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

StatusOr<double> DoubleOfBits(uint64_t bits) {
  const double value = std::bit_cast<double>(bits);
  if (std::isnan(value) && bits != kNanBits) {
    return Err(StatusCode::kDataLoss, "bytes: expected NaN as {:#x}, got {:#x}", kNanBits, bits);
  }
  return value;
}

}  // namespace

void ByteWriter::U8(uint8_t v) { Append(bytes_, v); }
void ByteWriter::U32(uint32_t v) { Append(bytes_, v); }
void ByteWriter::U64(uint64_t v) { Append(bytes_, v); }
void ByteWriter::I64(int64_t v) { Append(bytes_, v); }

void ByteWriter::F64(double v) {
  Append(bytes_, std::isnan(v) ? kNanBits : std::bit_cast<uint64_t>(v));
}

void ByteWriter::String(std::string_view v) {
  U64(v.size());
  bytes_.append(v);
}

void ByteWriter::Ints(std::span<const int64_t> v) {
  U64(v.size());
  bytes_.append(reinterpret_cast<const char*>(v.data()), v.size_bytes());
}

void ByteWriter::Doubles(std::span<const double> v) {
  U64(v.size());
  bytes_.reserve(bytes_.size() + v.size_bytes());
  for (const double value : v) F64(value);
}

void ByteWriter::AddDigest(const Digest& v) {
  bytes_.append(reinterpret_cast<const char*>(v.bytes.data()), v.bytes.size());
}

StatusOr<std::string_view> ByteReader::Take(size_t n) {
  if (n > rest_.size()) {
    return Err(StatusCode::kDataLoss, "bytes: expected {} more, {} are left", n, rest_.size());
  }
  const std::string_view taken = rest_.substr(0, n);
  rest_.remove_prefix(n);
  return taken;
}

StatusOr<uint8_t> ByteReader::U8() {
  AG_LET(const std::string_view bytes, Take(sizeof(uint8_t)));
  return Load<uint8_t>(bytes);
}

StatusOr<uint32_t> ByteReader::U32() {
  AG_LET(const std::string_view bytes, Take(sizeof(uint32_t)));
  return Load<uint32_t>(bytes);
}

StatusOr<uint64_t> ByteReader::U64() {
  AG_LET(const std::string_view bytes, Take(sizeof(uint64_t)));
  return Load<uint64_t>(bytes);
}

StatusOr<int64_t> ByteReader::I64() {
  AG_LET(const std::string_view bytes, Take(sizeof(int64_t)));
  return Load<int64_t>(bytes);
}

StatusOr<double> ByteReader::F64() {
  AG_LET(const uint64_t bits, U64());
  return DoubleOfBits(bits);
}

StatusOr<uint64_t> ByteReader::Count(size_t item_bytes_min) {
  AG_CHECK(item_bytes_min > 0);
  AG_LET(const uint64_t count, U64());
  if (count > rest_.size() / item_bytes_min) {
    return Err(StatusCode::kDataLoss,
               "bytes: expected {} items of at least {} bytes, {} bytes are left", count,
               item_bytes_min, rest_.size());
  }
  return count;
}

StatusOr<std::string> ByteReader::String() {
  AG_LET(const uint64_t size, Count(1));
  AG_LET(const std::string_view bytes, Take(size));
  return std::string(bytes);
}

StatusOr<std::vector<int64_t>> ByteReader::Ints() {
  AG_LET(const uint64_t count, Count(sizeof(int64_t)));
  AG_LET(const std::string_view bytes, Take(count * sizeof(int64_t)));
  std::vector<int64_t> values(count);
  if (count > 0) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

StatusOr<std::vector<double>> ByteReader::Doubles() {
  AG_LET(const uint64_t count, Count(sizeof(double)));
  std::vector<double> values(count);
  for (double& value : values) {
    AG_LET(value, F64());
  }
  return values;
}

StatusOr<Digest> ByteReader::ReadDigest() {
  Digest digest;
  AG_LET(const std::string_view bytes, Take(digest.bytes.size()));
  std::memcpy(digest.bytes.data(), bytes.data(), bytes.size());
  return digest;
}

Status ByteReader::End() const {
  if (rest_.empty()) return OkStatus();
  return Err(StatusCode::kDataLoss, "bytes: expected the end, {} are left", rest_.size());
}

std::string EncodeStatus(const Status& status) {
  ByteWriter out;
  out.U32(static_cast<uint32_t>(status.code()) | (IsHostFault(status) ? kHostFaultBit : 0));
  out.String(Message(status));
  return out.Take();
}

Status DecodeStatus(std::string_view bytes) {
  ByteReader in(bytes);
  AG_LET(const uint32_t word, in.U32());
  AG_LET(const std::string message, in.String());
  AG_TRY(in.End());
  const uint32_t code = word & ~kHostFaultBit;
  if (code > static_cast<uint32_t>(StatusCode::kUnauthenticated)) {
    return Err(StatusCode::kDataLoss, "status: code {}", code);
  }
  Status status(static_cast<StatusCode>(code), message);
  return code == word ? status : AsHostFault(std::move(status));
}

std::string Base64(std::string_view bytes) {
  return absl::Base64Escape({bytes.data(), bytes.size()});
}

StatusOr<std::string> FromBase64(std::string_view text) {
  std::string bytes;
  // absl takes other forms of the same bytes as well.
  if (absl::Base64Unescape({text.data(), text.size()}, &bytes) && Base64(bytes) == text) {
    return bytes;
  }
  return Err(StatusCode::kInvalidArgument, "base64: {} characters in no canonical form",
             text.size());
}

}  // namespace ag
