#include "base/status.h"

#include <cstdio>
#include <cstdlib>

#include "absl/strings/cord.h"

namespace ag {
namespace {

constexpr char kHostFault[] = "autograph/host-fault";

}  // namespace

Status Within(Status status, std::string_view noun) {
  if (status.ok()) return status;
  Status within(status.code(), fmt::format("{}: {}", noun, Message(status)));
  status.ForEachPayload(
      [&](absl::string_view type, const absl::Cord& payload) { within.SetPayload(type, payload); });
  return within;
}

std::string Message(const Status& status) { return std::string(status.message()); }

Status AsHostFault(Status status) {
  status.SetPayload(kHostFault, absl::Cord());
  return status;
}

bool IsHostFault(const Status& status) { return status.GetPayload(kHostFault).has_value(); }

std::string ToString(const Status& status) {
  if (status.ok()) return "OK";
  return fmt::format("{}: {}", absl::StatusCodeToString(status.code()), Message(status));
}

namespace internal {

void CheckFailed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "%s:%d: AG_CHECK failed: %s\n", file, line, condition);
  std::fflush(stderr);
  std::abort();
}

}  // namespace internal
}  // namespace ag
