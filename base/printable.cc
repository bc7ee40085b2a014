#include "base/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace ag {
namespace {

// Returns the code point that begins the text and its bytes; 0 bytes: they are no UTF-8.
struct CodePoint {
  uint32_t value = 0;
  size_t bytes = 0;
};
CodePoint FirstOf(std::string_view text) {
  const auto first = static_cast<uint8_t>(text.front());
  if (first < 0x80) return {first, 1};
  const size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < bytes) return {};
  uint32_t value = first & (0xffu >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<uint8_t>(text[i]);
    if ((next & 0xc0) != 0x80) return {};
    value = value << 6 | (next & 0x3f);
  }
  return {value, bytes};
}

// Returns the bytes of the character that begins the text; 0: it is not to be printed.
size_t PrintableAt(std::string_view text) {
  const auto [value, bytes] = FirstOf(text);
  const bool is_control = value < 0x20 || (value >= 0x7f && value < 0xa0);
  const bool is_direction = (value >= 0x200e && value <= 0x200f) ||
                            (value >= 0x2028 && value <= 0x202e) ||
                            (value >= 0x2066 && value <= 0x2069);
  return is_control || is_direction ? 0 : bytes;
}

}  // namespace

std::string OneLine(std::string_view message) {
  constexpr size_t kShownMax = 4000;
  std::string shown;
  for (const char c : message.substr(0, kShownMax)) {
    if (c >= ' ' && c <= '~') {
      shown += c;
    } else if (c == '\n' || c == '\t') {
      shown += ' ';
    } else {
      shown += fmt::format("\\x{:02x}", static_cast<uint8_t>(c));
    }
  }
  return message.size() > kShownMax ? shown + "..." : shown;
}

std::string Printable(std::string_view text) {
  std::string shown;
  for (size_t i = 0; i < text.size();) {
    const size_t size = PrintableAt(text.substr(i));
    const bool is_kept = size > 0 || text[i] == '\n' || text[i] == '\t';
    const std::string_view piece = text.substr(i, std::max<size_t>(size, 1));
    shown += is_kept ? std::string(piece)
                     : fmt::format("\\x{:02x}", static_cast<uint8_t>(piece.front()));
    i += piece.size();
  }
  return shown;
}

bool IsPrintable(std::string_view text) {
  while (!text.empty()) {
    const size_t size = PrintableAt(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

Status CheckPrintable(std::string_view field, std::string_view text) {
  if (IsPrintable(text)) return OkStatus();
  return Err(StatusCode::kInvalidArgument, "{}: a control character in '{}'", field, OneLine(text));
}

}  // namespace ag
