#include "graph/input_role.h"

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"

namespace ag {
namespace {

bool IsColours(int64_t size) { return size == 1 || size == 3 || size == 4; }

bool IsPicture(const TensorType& type) {
  if (type.shape.size() != 4) return false;
  return IsColours(type.shape[1]) || IsColours(type.shape[3]);
}

InputRole RoleOfIntegers(std::string_view name, const TensorType& type) {
  if (NamesAny(name, {"token_type", "segment"})) return InputRole::kTokenTypes;
  if (NamesAny(name, {"position"})) return InputRole::kPositions;
  const bool is_length = NamesAny(name, {"length", "lens"}) || name.ends_with("len");
  if (is_length && type.shape.size() <= 2) return InputRole::kLengths;
  return InputRole::kIntegers;
}

}  // namespace

bool NamesAny(std::string_view name, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(
      words, [&](std::string_view word) { return name.find(word) != std::string_view::npos; });
}

bool IsSound(std::string_view name, DType dtype) {
  const std::string small = absl::AsciiStrToLower({name.data(), name.size()});
  return IsFloat(dtype) && NamesAny(small, {"wav", "audio", "signal", "speech", "pcm"});
}

PictureAxes PictureAxesOf(int64_t size_of_axis_1, int64_t size_of_axis_3) {
  const bool is_last = IsColours(size_of_axis_3) && !IsColours(size_of_axis_1);
  return is_last ? PictureAxes{3, 1, 2} : PictureAxes{};
}

InputRole RoleByName(std::string_view name, const TensorType& type) {
  if (type.dtype == DType::kString) return InputRole::kStrings;
  const std::string small = absl::AsciiStrToLower({name.data(), name.size()});
  if (NamesAny(small, {"mask"})) {
    return NamesAny(small, {"pad"}) ? InputRole::kPadding : InputRole::kMask;
  }
  if (type.dtype == DType::kBool) return InputRole::kFlags;
  if (IsInteger(type.dtype)) return RoleOfIntegers(small, type);
  if (IsSound(name, type.dtype)) return InputRole::kSound;
  const bool is_state = NamesAny(small, {"past", "cache", "state", "hidden"});
  return IsPicture(type) && !is_state ? InputRole::kPicture : InputRole::kNumbers;
}

}  // namespace ag
