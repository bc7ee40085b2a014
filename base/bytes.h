// Canonical bytes: little-endian, length-prefixed, exactly one encoding for each value. Stored
// graphs, stored plans and the executor's frames consist of them. A reader never trusts its input:
// it checks every length, and a field that is too short or too long is kDataLoss. One thread at a
// time per object.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.h"
#include "base/status.h"

namespace ag {

class ByteWriter {
 public:
  void U8(uint8_t v);
  void U32(uint32_t v);
  void U64(uint64_t v);
  void I64(int64_t v);
  void F64(double v);                       // The bit pattern; every NaN becomes the same NaN.
  void String(std::string_view v);          // u64 length, then the bytes.
  void Ints(std::span<const int64_t> v);    // u64 count, then each as I64.
  void Doubles(std::span<const double> v);  // u64 count, then each as F64.
  void AddDigest(const Digest& v);          // 32 bytes.

  const std::string& bytes() const { return bytes_; }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}
  StatusOr<uint8_t> U8();
  StatusOr<uint32_t> U32();
  StatusOr<uint64_t> U64();
  StatusOr<int64_t> I64();
  StatusOr<double> F64();
  StatusOr<std::string> String();
  StatusOr<std::vector<int64_t>> Ints();
  StatusOr<std::vector<double>> Doubles();
  StatusOr<Digest> ReadDigest();
  // Reads a count of items. kDataLoss: the rest cannot hold that many items of `item_bytes_min`
  // bytes.
  StatusOr<uint64_t> Count(size_t item_bytes_min);
  size_t left() const { return rest_.size(); }
  Status End() const;  // Returns kDataLoss when bytes are left over.

 private:
  StatusOr<std::string_view> Take(size_t n);
  std::string_view rest_;
};

// A status as its code, whether it is a fault of the host, and its message. DecodeStatus returns
// the status that the bytes hold, kDataLoss when they hold none.
std::string EncodeStatus(const Status& status);
Status DecodeStatus(std::string_view bytes);

std::string Base64(std::string_view bytes);
// Converts bytes to base64 and back. FromBase64 returns kInvalidArgument for text that Base64 does
// not write.
StatusOr<std::string> FromBase64(std::string_view text);

}  // namespace ag
