#include "base/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <random>

namespace ag {
namespace {

constexpr size_t kVersion = 2, kTraceId = 32, kParentId = 16, kFlags = 2;
constexpr size_t kLength = kVersion + 1 + kTraceId + 1 + kParentId + 1 + kFlags;

bool IsHex(std::string_view text) {
  return std::ranges::all_of(
      text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool IsZero(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c == '0'; });
}

// Not base/random.h, whose numbers repeat: ids of two processes must differ.
std::string RandomHex(size_t digits) {
  thread_local std::random_device device;
  std::string hex;
  while (hex.size() < digits || IsZero(hex)) {
    if (hex.size() >= digits) hex.clear();
    hex += fmt::format("{:08x}", static_cast<uint32_t>(device()));
  }
  return hex.substr(0, digits);
}

}  // namespace

std::string Trace::ToString() const {
  return trace_id.empty() ? "" : fmt::format("00-{}-{}-{}", trace_id, parent_id, flags);
}

Trace ParseTrace(std::string_view text) {
  const bool is_long = text.size() > kLength;
  if (text.size() < kLength || text[2] != '-' || text[35] != '-' || text[52] != '-') return {};
  const std::string_view version = text.substr(0, kVersion), trace = text.substr(3, kTraceId);
  const std::string_view parent = text.substr(36, kParentId), flags = text.substr(53, kFlags);
  const bool is_known =
      version == "00" ? !is_long : version != "ff" && (!is_long || text[kLength] == '-');
  if (!is_known || !IsHex(version) || !IsHex(trace) || !IsHex(parent) || !IsHex(flags)) return {};
  if (IsZero(trace) || IsZero(parent)) return {};
  return {std::string(trace), std::string(parent), std::string(flags)};
}

Trace NewTrace() { return {RandomHex(kTraceId), RandomHex(kParentId)}; }

Trace NextSpan(const Trace& trace) {
  if (trace.trace_id.empty()) return NewTrace();
  return {trace.trace_id, RandomHex(kParentId), trace.flags};
}

Trace TraceOfEnvironment() {
  const char* text = std::getenv("TRACEPARENT");
  return text == nullptr ? Trace() : ParseTrace(text);
}

}  // namespace ag
