#include "graph/onnx/fields.h"

#include <algorithm>

namespace ag {
namespace {

struct Cursor {
  std::string_view all;
  size_t at = 0;

  bool Varint(uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 70 && at < all.size(); shift += 7) {
      const auto byte = static_cast<uint8_t>(all[at++]);
      if (shift < 64) value |= uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) == 0) return true;
    }
    return false;
  }

  // Skips the value of wire type `type`. Returns false: not a value, or truncated.
  bool Value(uint32_t type, WireField& field) {
    uint64_t size = 0;
    if (type == 0) return Varint(size);
    if (type == 1) size = 8;
    if (type == 5) size = 4;
    if (type == 2 && !Varint(size)) return false;
    if ((type != 1 && type != 2 && type != 5) || size > all.size() - at) return false;
    field.is_bytes = type == 2;
    if (field.is_bytes) field.payload = all.substr(at, size);
    at += size;
    return true;
  }
};

}  // namespace

Status ForEachField(std::string_view message,
                    const std::function<Status(const WireField&)>& visit) {
  Cursor cursor{message};
  while (cursor.at < message.size()) {
    const size_t begin = cursor.at;
    uint64_t tag = 0;
    WireField field;
    const bool tagged = cursor.Varint(tag) && (tag >> 3) != 0 && (tag >> 32) == 0;
    if (!tagged || !cursor.Value(static_cast<uint32_t>(tag & 7), field)) {
      return Err(StatusCode::kInvalidArgument,
                 "not ONNX, or cut short: no whole field at byte {} of {}", begin, message.size());
    }
    field.number = static_cast<uint32_t>(tag >> 3);
    field.whole = message.substr(begin, cursor.at - begin);
    AG_TRY(visit(field));
  }
  return OkStatus();
}

namespace {

StatusOr<std::string> SomeFields(std::string_view message, std::span<const uint32_t> numbers,
                                 bool listed) {
  std::string fields;
  AG_TRY(ForEachField(message, [&](const WireField& field) {
    if ((std::ranges::count(numbers, field.number) > 0) == listed) fields += field.whole;
    return OkStatus();
  }));
  return fields;
}

}  // namespace

StatusOr<std::string> FieldsOf(std::string_view message, std::span<const uint32_t> numbers) {
  return SomeFields(message, numbers, /*listed=*/true);
}

StatusOr<std::string> FieldsBut(std::string_view message, std::span<const uint32_t> numbers) {
  return SomeFields(message, numbers, /*listed=*/false);
}

void AppendVarint(uint64_t value, std::string& out) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

void AppendLengthTag(uint32_t number, uint64_t size, std::string& out) {
  AppendVarint(uint64_t{number} << 3 | 2, out);
  AppendVarint(size, out);
}

}  // namespace ag
