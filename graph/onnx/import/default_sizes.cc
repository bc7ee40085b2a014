#include "graph/onnx/import/default_sizes.h"

#include <algorithm>
#include <charconv>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

namespace ag {
namespace {

constexpr int64_t kBatch = 1, kSequence = 128, kPast = 16, kSide = 224, kColours = 3;

bool NamesAny(const std::string& name, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(words, [&](std::string_view word) {
    return absl::StrContains(name, absl::string_view(word.data(), word.size()));
  });
}

std::optional<int64_t> ByName(const std::string& dim) {
  const std::string name = absl::AsciiStrToLower(dim);
  if (NamesAny(name, {"past", "cache"})) return kPast;
  if (NamesAny(name, {"batch"}) || name == "n" || name == "b" || name == "bs") return kBatch;
  if (NamesAny(name, {"seq", "len", "time", "token", "frame"}) || name == "t" || name == "s") {
    return kSequence;
  }
  if (NamesAny(name, {"height", "width"}) || name == "h" || name == "w") return kSide;
  if (NamesAny(name, {"channel"}) || name == "c") return kColours;
  return std::nullopt;
}

// A picture has its channels first, or last where that size is known and small.
int64_t OfPicture(const OnnxValueInfo& input, size_t axis) {
  const auto is_colours = [](int64_t size) { return size == 1 || size == 3 || size == 4; };
  const bool last = is_colours(input.dims[3].size) && !is_colours(input.dims[1].size);
  const size_t channels = last ? 3 : 1;
  return axis == channels ? kColours : kSide;
}

}  // namespace

bool IsSymbol(const std::string& name) {
  return !name.empty() && name != "?" && name != "-1" && name != "None" && name != "*";
}

std::optional<int64_t> SizeOfSum(const std::string& name, const DimSizes& sizes) {
  if (!absl::StrContains(name, '+')) return std::nullopt;
  int64_t sum = 0;
  for (const absl::string_view piece : absl::StrSplit(name, '+')) {
    const std::string part(absl::StripAsciiWhitespace(piece));
    int64_t number = 0;
    const auto read = std::from_chars(part.data(), part.data() + part.size(), number);
    const bool is_number = read.ec == std::errc() && read.ptr == part.data() + part.size();
    const auto known = sizes.find(part);
    if (!is_number && known == sizes.end()) return std::nullopt;
    const int64_t size = is_number ? number : known->second;
    if (size < 0 || size > kElementsMax) return std::nullopt;
    sum += size;
  }
  return sum;
}

int64_t DefaultSize(const OnnxValueInfo& input, size_t axis) {
  const std::string& name = input.dims[axis].name;
  if (IsSymbol(name)) {
    const std::optional<int64_t> named = ByName(name);
    if (named.has_value()) return *named;
  }
  const size_t rank = input.dims.size();
  if (axis == 0) return rank == 1 && !IsSymbol(name) ? 1 : kBatch;
  if (rank == 4) return OfPicture(input, axis);
  const bool is_text = rank == 2 && DTypeFromOnnx(input.data_type).ok() &&
                       IsInteger(*DTypeFromOnnx(input.data_type));
  return is_text || (rank == 3 && axis < 3) ? kSequence : 1;
}

}  // namespace ag
