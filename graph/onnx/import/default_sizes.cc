#include "graph/onnx/import/default_sizes.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "graph/input_role.h"

namespace ag {
namespace {

constexpr int64_t kBatch = 1, kPast = 16, kColours = 3, kSamples = 16'000;

struct SizeSet {
  int64_t sequence, height, width;
  int64_t unknown;  // For what has no known role.
};

// Pictures: a classifier's, lines of text, detectors'. Sequences: tokens, a voice detector's
// window, a second of sound.
constexpr std::array<SizeSet, kDefaultSizeSets> kSets = {{{128, 224, 224, 1},
                                                          {512, 48, 320, 128},
                                                          {16'000, 256, 256, 16'000},
                                                          {64, 32, 320, 512},
                                                          {256, 640, 640, 64},
                                                          {32, 320, 320, 16},
                                                          {1024, 512, 512, 1024},
                                                          {16, 64, 64, 3}}};

std::optional<int64_t> ByName(const std::string& dim, size_t axis, const SizeSet& set) {
  const std::string name = absl::AsciiStrToLower(dim);
  if (NamesAny(name, {"past", "cache"})) return kPast;
  if (NamesAny(name, {"batch"})) return kBatch;
  if (axis == 0 && (name == "n" || name == "b" || name == "bs")) return kBatch;
  if (NamesAny(name, {"sample"})) return std::max(kSamples, set.sequence);
  if (NamesAny(name, {"seq", "len", "time", "token", "frame"}) || name == "t" || name == "s") {
    return set.sequence;
  }
  if (NamesAny(name, {"height"}) || name == "h") return set.height;
  if (NamesAny(name, {"width"}) || name == "w") return set.width;
  if (NamesAny(name, {"channel"}) || name == "c") return kColours;
  return std::nullopt;
}

int64_t OfPicture(const OnnxValueInfo& input, size_t axis, const SizeSet& set) {
  const PictureAxes axes = PictureAxesOf(input.dims[1].size, input.dims[3].size);
  if (axis == axes.channels) return kColours;
  return axis == axes.height ? set.height : set.width;
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

bool HasShorterSequences(int set) {
  return kSets[static_cast<size_t>(set)].sequence < kSets[0].sequence;
}

int64_t DefaultSize(const OnnxValueInfo& input, size_t axis, int set) {
  const SizeSet& sizes = kSets[static_cast<size_t>(set)];
  const std::string& name = input.dims[axis].name;
  if (IsSymbol(name)) {
    const std::optional<int64_t> named = ByName(name, axis, sizes);
    if (named.has_value()) return *named;
  }
  const size_t rank = input.dims.size();
  if (axis == 0 && (rank > 1 || IsSymbol(name))) return kBatch;
  if (axis == 0) return sizes.unknown;
  if (rank == 4) return OfPicture(input, axis, sizes);
  const StatusOr<DType> dtype = DTypeFromOnnx(input.data_type);
  if (rank == 2 && dtype.ok() && IsSound(input.name, *dtype))
    return std::max(kSamples, sizes.unknown);
  const bool is_text = rank == 2 && dtype.ok() && IsInteger(*dtype);
  return is_text || (rank == 3 && axis < 3) ? sizes.sequence : sizes.unknown;
}

}  // namespace ag
