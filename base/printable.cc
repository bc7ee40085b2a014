#include "base/printable.h"

#include <fmt/format.h>

#include <cstdint>

namespace ag {

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

}  // namespace ag
