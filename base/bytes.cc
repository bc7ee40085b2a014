#include "base/bytes.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace ag {
namespace {

// Values are copied as they lie in memory; a big-endian port would swap bytes in Append and Load.
static_assert(std::endian::native == std::endian::little);
static_assert(std::numeric_limits<double>::is_iec559);

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
  out.U32(static_cast<uint32_t>(status.code()));
  out.String(Message(status));
  return out.Take();
}

Status DecodeStatus(std::string_view bytes) {
  ByteReader in(bytes);
  AG_LET(const uint32_t code, in.U32());
  AG_LET(const std::string message, in.String());
  AG_TRY(in.End());
  if (code > static_cast<uint32_t>(StatusCode::kUnauthenticated)) {
    return Err(StatusCode::kDataLoss, "status: code {}", code);
  }
  return Status(static_cast<StatusCode>(code), message);
}

namespace {

constexpr std::string_view kBase64Digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// Returns the value of each base64 digit, -1 for every other character.
constexpr std::array<int, 256> Base64Values() {
  std::array<int, 256> values{};
  for (int& value : values) value = -1;
  for (size_t i = 0; i < kBase64Digits.size(); ++i) {
    values[static_cast<uint8_t>(kBase64Digits[i])] = static_cast<int>(i);
  }
  return values;
}

}  // namespace

std::string Base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    uint32_t three = 0;
    for (size_t i = at; i < at + 3; ++i) {
      three = three << 8 | (i < bytes.size() ? static_cast<uint8_t>(bytes[i]) : 0);
    }
    const size_t digits = std::min<size_t>(bytes.size() - at, 3) + 1;
    for (size_t i = 0; i < 4; ++i) {
      text += i < digits ? kBase64Digits[three >> (18 - 6 * i) & 63] : '=';
    }
  }
  return text;
}

StatusOr<std::string> FromBase64(std::string_view text) {
  static constexpr std::array<int, 256> kValues = Base64Values();
  if (text.size() % 4 != 0) {
    return Err(StatusCode::kInvalidArgument, "base64: expected a multiple of 4 characters, got {}",
               text.size());
  }
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  uint32_t bits = 0;  // The digits that are not bytes yet, at the low end.
  int bit_count = 0;
  for (size_t i = 0; i < text.size() - padding; ++i) {
    const int value = kValues[static_cast<uint8_t>(text[i])];
    if (value < 0) {
      return Err(StatusCode::kInvalidArgument, "base64: character {:#04x} at position {}",
                 static_cast<uint8_t>(text[i]), i);
    }
    bits = (bits << 6 | static_cast<uint32_t>(value)) & 0xfff;
    bit_count += 6;
    if (bit_count < 8) continue;
    bit_count -= 8;
    bytes += static_cast<char>(bits >> bit_count & 0xff);
  }
  // Each byte string has one text: the unused bits of the last digit must be zero.
  if ((bits & ((1U << bit_count) - 1)) != 0) {
    return Err(StatusCode::kInvalidArgument, "base64: bits are left over after {} bytes",
               bytes.size());
  }
  return bytes;
}

}  // namespace ag
