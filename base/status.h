// Errors as values: absl::Status with messages formatted by fmt, and three macros. Pure functions.
//
// Choose the code by what the caller should do next:
//   kInvalidArgument    fix the request           kUnimplemented      try another provider
//   kNotFound           make it first             kUnavailable        retry, maybe elsewhere
//   kFailedPrecondition change state, then retry  kResourceExhausted  smaller, or another device
//   kDeadlineExceeded   the budget is spent       kDataLoss/kInternal stored bytes / our own bug
// The message names the subject, the expected and the found value. Each layer adds its noun once,
// with Within.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ag {

using Status = absl::Status;
template <class T>
using StatusOr = absl::StatusOr<T>;
using StatusCode = absl::StatusCode;

inline Status OkStatus() { return absl::OkStatus(); }

// Returns an error with a formatted message. REQUIRES: code is not kOk.
template <class... Args>
Status Err(StatusCode code, fmt::format_string<Args...> format, Args&&... args) {
  return Status(code, fmt::format(format, std::forward<Args>(args)...));
}

// Returns `status`, with its payloads and "noun: " before its message; an OK status as it is.
Status Within(Status status, std::string_view noun);

// Returns the message as a std::string: absl::string_view may differ from std::string_view.
std::string Message(const Status& status);

// Marks an error as a fault of the host, such as a full disk, or no thread or descriptor that is
// left. Work that met one is not to blame: it waits and is tried again. Within and EncodeStatus
// (base/bytes.h) keep the mark.
Status AsHostFault(Status status);
bool IsHostFault(const Status& status);

// Returns "INVALID_ARGUMENT: the message", or "OK".
std::string ToString(const Status& status);

namespace internal {

[[noreturn]] void CheckFailed(const char* file, int line, const char* condition);

inline Status WithinIf(Status status) { return status; }
template <class... Args>
Status WithinIf(Status status, fmt::format_string<Args...> format, Args&&... args) {
  return Within(std::move(status), fmt::format(format, std::forward<Args>(args)...));
}

inline const Status& ToStatus(const Status& status) { return status; }
template <class T>
const Status& ToStatus(const StatusOr<T>& status_or) {
  return status_or.status();
}

}  // namespace internal
}  // namespace ag

#define AG_CONCAT_(a, b) a##b
#define AG_CONCAT(a, b) AG_CONCAT_(a, b)

// AG_TRY(expression) or AG_TRY(expression, "noun {}", args...): returns the error, if there is one,
// with the noun before its message.
#define AG_TRY(expression, ...)                                                             \
  do {                                                                                      \
    ::ag::Status ag_try_status = ::ag::internal::ToStatus(expression);                      \
    if (!ag_try_status.ok()) {                                                              \
      return ::ag::internal::WithinIf(std::move(ag_try_status) __VA_OPT__(, ) __VA_ARGS__); \
    }                                                                                       \
  } while (false)

// AG_LET(Type name, expression): declares `name` with the value of a StatusOr, or returns its
// error.
#define AG_LET(declaration, ...)                             \
  auto AG_CONCAT(ag_let_, __LINE__) = (__VA_ARGS__);         \
  if (!AG_CONCAT(ag_let_, __LINE__).ok()) {                  \
    return std::move(AG_CONCAT(ag_let_, __LINE__)).status(); \
  }                                                          \
  declaration = *std::move(AG_CONCAT(ag_let_, __LINE__))

// AG_CHECK(condition): stops the process, in every build mode, when the condition is false: a bug.
#define AG_CHECK(condition) \
  ((condition) ? (void)0 : ::ag::internal::CheckFailed(__FILE__, __LINE__, #condition))
