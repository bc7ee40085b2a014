#include "base/reason.h"

#include <array>

#include "absl/strings/cord.h"
#include "base/text.h"

namespace ag {
namespace {

constexpr char kReason[] = "autograph/reason";
constexpr char kRetry[] = "autograph/retry-ns";
constexpr Nanos kHostPause = std::chrono::seconds(5);

struct Named {
  Reason reason;
  const char* name;
};

constexpr std::array kNames = {
    Named{Reason::kTokenMissing, "TOKEN_MISSING"},
    Named{Reason::kTokenUnknown, "TOKEN_UNKNOWN"},
    Named{Reason::kRoleMissing, "ROLE_MISSING"},
    Named{Reason::kQuotaExceeded, "QUOTA_EXCEEDED"},
    Named{Reason::kRequestUndecodable, "REQUEST_UNDECODABLE"},
    Named{Reason::kRequestIdReused, "REQUEST_ID_REUSED"},
    Named{Reason::kBlobMissing, "BLOB_MISSING"},
    Named{Reason::kJobMissing, "JOB_MISSING"},
    Named{Reason::kAnswerMissing, "ANSWER_MISSING"},
    Named{Reason::kNoWorker, "NO_WORKER"},
    Named{Reason::kDeviceAmbiguous, "DEVICE_AMBIGUOUS"},
    Named{Reason::kNoOnnxRuntime, "NO_ONNX_RUNTIME"},
    Named{Reason::kModelInUse, "MODEL_IN_USE"},
    Named{Reason::kServerStopping, "SERVER_STOPPING"},
    Named{Reason::kTooManyTransfers, "TOO_MANY_TRANSFERS"},
    Named{Reason::kTooManyWatches, "TOO_MANY_WATCHES"},
    Named{Reason::kTooLarge, "TOO_LARGE"},
    Named{Reason::kUploadIncomplete, "UPLOAD_INCOMPLETE"},
    Named{Reason::kHostFault, "HOST_FAULT"},
};

constexpr auto kAll = [] {
  std::array<Reason, kNames.size()> all{};
  for (size_t i = 0; i < all.size(); ++i) all[i] = kNames[i].reason;
  return all;
}();

std::string PayloadOf(const Status& status, const char* type) {
  const auto payload = status.GetPayload(type);
  return payload.has_value() ? std::string(*payload) : "";
}

}  // namespace

std::span<const Reason> AllReasons() { return kAll; }

std::string ReasonName(Reason reason) { return kNames[static_cast<size_t>(reason)].name; }

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
