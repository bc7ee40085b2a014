// What programs read of an error beside its code: a reason, and whether calling again may help.
// Both travel to clients (net/error_details.h); docs/protocol.md lists the reasons. Pure functions.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "base/clock.h"
#include "base/status.h"

namespace ag {

enum class Reason {
  kTokenMissing,
  kTokenUnknown,
  kRoleMissing,
  kQuotaExceeded,
  kRequestUndecodable,
  kRequestIdReused,
  kBlobMissing,
  kJobMissing,
  kAnswerMissing,
  kNoWorker,
  kDeviceAmbiguous,
  kNoOnnxRuntime,
  kModelInUse,
  kServerStopping,
  kTooManyTransfers,
  kTooManyWatches,
  kTooManyCalls,
  kTooLarge,
  kUploadIncomplete,
  kHostFault,  // The last one.
};
std::span<const char* const> ReasonNames();  // In the order of the enum.
std::string ReasonName(Reason reason);       // "TOKEN_MISSING"

// Returns the error with a reason, and with the time after which a caller may try again. Within
// keeps both.
Status Because(Reason reason, Status status);
Status RetryAfter(Nanos pause, Status status);

// Returns the name of the reason: that of Because, HOST_FAULT for a fault of the host, else the
// name of the code. "": the status is OK.
std::string ReasonOf(const Status& status);
// Returns when to try again: as RetryAfter says, five seconds for a fault of the host, else never.
std::optional<Nanos> RetryPauseOf(const Status& status);
// The same two of an error that came over the wire.
Status WithReason(const std::string& reason, std::optional<Nanos> pause, Status status);

}  // namespace ag
