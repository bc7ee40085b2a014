#include "base/reason.h"

#include <iterator>

#include "absl/strings/cord.h"
#include "base/text.h"

namespace ag {
namespace {

constexpr char kReason[] = "autograph/reason";
constexpr char kRetry[] = "autograph/retry-ns";
constexpr Nanos kHostPause = std::chrono::seconds(5);

// In the order of the enum.
constexpr const char* kNames[] = {
    "TOKEN_MISSING",       "TOKEN_UNKNOWN",     "ROLE_MISSING",       "QUOTA_EXCEEDED",
    "REQUEST_UNDECODABLE", "REQUEST_ID_REUSED", "BLOB_MISSING",       "JOB_MISSING",
    "ANSWER_MISSING",      "NO_WORKER",         "DEVICE_AMBIGUOUS",   "NO_ONNX_RUNTIME",
    "MODEL_IN_USE",        "SERVER_STOPPING",   "TOO_MANY_TRANSFERS", "TOO_MANY_WATCHES",
    "TOO_MANY_CALLS",      "TOO_LARGE",         "UPLOAD_INCOMPLETE",  "HOST_FAULT",
};
static_assert(std::size(kNames) == static_cast<size_t>(Reason::kHostFault) + 1);

std::string PayloadOf(const Status& status, const char* type) {
  const auto payload = status.GetPayload(type);
  return payload.has_value() ? std::string(*payload) : "";
}

}  // namespace

std::span<const char* const> ReasonNames() { return kNames; }

std::string ReasonName(Reason reason) { return kNames[static_cast<size_t>(reason)]; }

Status Because(Reason reason, Status status) {
  if (!status.ok()) status.SetPayload(kReason, absl::Cord(ReasonName(reason)));
  return status;
}

Status RetryAfter(Nanos pause, Status status) {
  if (!status.ok()) status.SetPayload(kRetry, absl::Cord(fmt::format("{}", pause.count())));
  return status;
}

Status WithReason(const std::string& reason, std::optional<Nanos> pause, Status status) {
  if (!status.ok() && !reason.empty()) status.SetPayload(kReason, absl::Cord(reason));
  return pause.has_value() ? RetryAfter(*pause, std::move(status)) : status;
}

std::string ReasonOf(const Status& status) {
  if (status.ok()) return "";
  if (std::string reason = PayloadOf(status, kReason); !reason.empty()) return reason;
  if (IsHostFault(status)) return ReasonName(Reason::kHostFault);
  return std::string(absl::StatusCodeToString(status.code()));
}

std::optional<Nanos> RetryPauseOf(const Status& status) {
  const auto pause = ParseInt(PayloadOf(status, kRetry));
  if (pause.ok()) return Nanos{*pause};
  return IsHostFault(status) ? std::optional(kHostPause) : std::nullopt;
}

}  // namespace ag
