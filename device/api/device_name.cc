#include "device/api/device_name.h"

#include <charconv>

namespace ag {
namespace {

constexpr std::string_view kForms = "cpu, cpu:<cores>, cuda:<ordinal>, sim:<spec>";

StatusOr<int> ParseCount(std::string_view text, std::string_view digits, int low) {
  int value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || value < low) {
    return Err(StatusCode::kInvalidArgument, "device \"{}\": expected a number >= {} after ':'",
               text, low);
  }
  return value;
}

}  // namespace

std::string DeviceName::Text() const {
  switch (kind) {
    case Kind::kCpu:
      return cores == 0 ? "cpu" : fmt::format("cpu:{}", cores);
    case Kind::kCuda:
      return fmt::format("cuda:{}", ordinal);
    case Kind::kSim:
      return "sim:" + spec;
  }
  return "";
}

StatusOr<DeviceName> ParseDeviceName(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view word = text.substr(0, colon);
  const bool bare = colon == std::string_view::npos;
  const std::string_view rest = bare ? std::string_view() : text.substr(colon + 1);
  DeviceName name;
  if (word == "cpu") {
    if (bare) return name;
    AG_LET(name.cores, ParseCount(text, rest, 1));
    return name;
  }
  if (word == "cuda") {
    name.kind = DeviceName::Kind::kCuda;
    if (bare) return name;
    AG_LET(name.ordinal, ParseCount(text, rest, 0));
    return name;
  }
  if (word == "sim" && !rest.empty()) {
    name.kind = DeviceName::Kind::kSim;
    name.spec = std::string(rest);
    return name;
  }
  return Err(StatusCode::kInvalidArgument, "device \"{}\": expected one of {}", text, kForms);
}

bool IsSpecFile(std::string_view spec) {
  return spec.find('/') != std::string_view::npos || spec.ends_with(".spec") ||
         spec.ends_with(".recording");
}

}  // namespace ag
