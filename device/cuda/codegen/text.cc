#include "device/cuda/codegen/text.h"

namespace ag::cuda {

void Text::Insert(const Text& other) {
  std::vector<std::string_view> lines = Split(other.lines_, '\n');
  lines.pop_back();  // The text after the last line's end.
  for (const std::string_view line : lines) Append(std::string(line));
}

}  // namespace ag::cuda
