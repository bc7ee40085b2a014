#include "client/cli/context.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/reason.h"
#include "base/text.h"
#include "client/cli/embedded.h"

namespace ag {
std::string DefaultDataDir() {
  if (const char* dir = std::getenv("XDG_DATA_HOME"); dir != nullptr && *dir != 0) {
    return std::string(dir) + "/autograph";
  }
  const char* home = std::getenv("HOME");
  return std::string(home != nullptr && *home != 0 ? home : "/tmp") + "/.local/share/autograph";
}

Context::Context(CommonFlags flags)
    : flags_(std::move(flags)),
      terminal_(isatty(STDERR_FILENO) != 0 && !flags_.json),
      printed_(std::make_shared<std::atomic<bool>>(false)) {
  if (flags_.data_dir.empty()) flags_.data_dir = DefaultDataDir();
}

Context::~Context() = default;

StatusOr<Client*> Context::Connect(const std::string& device) {
  if (!flags_.server.empty()) {
    AG_LET(client_, Client::Connect(flags_.server, flags_.channel));
    AG_TRY(client_->GetCapabilities());  // Fails at once when no server answers.
    return client_.get();
  }
  AG_LET(embedded_, EmbeddedService::Start(flags_.data_dir, device));
  if (!embedded_->note().empty()) Note(embedded_->note());
  client_ = std::make_unique<Client>(embedded_->channel(),
                                     [this](const Digest& digest, const std::string& path) {
                                       return embedded_->ShareBlob(digest, path);
                                     });
  return client_.get();
}

void Context::Print(const std::string& line) const {
  ::flockfile(stdout);  // Last words come behind it.
  *printed_ = true;
  std::fputs(((flags_.json ? line : Printable(line)) + "\n").c_str(), stdout);
  std::fflush(stdout);
  ::funlockfile(stdout);
}

void Context::Note(const std::string& line) const {
  if (!flags_.json) std::fputs((Printable(line) + "\n").c_str(), stderr);
}

int ExitCodeOf(const Status& status) {
  switch (status.code()) {
    case StatusCode::kOk:
      return kExitOk;
    case StatusCode::kInvalidArgument:
    case StatusCode::kOutOfRange:
    case StatusCode::kNotFound:
    case StatusCode::kUnimplemented:
    case StatusCode::kResourceExhausted:
    case StatusCode::kFailedPrecondition:
      return kExitInput;
    case StatusCode::kUnavailable:
    case StatusCode::kDeadlineExceeded:
    case StatusCode::kUnauthenticated:
    case StatusCode::kPermissionDenied:
      return kExitUnavailable;
    case StatusCode::kCancelled:
      return kExitInterrupted;
    default:
      return kExitInternal;
  }
}

std::function<void()> Context::LastWords() const {
  if (!flags_.json) return nullptr;
  return [printed = printed_, program = flags_.program] {
    // Whoever reads standard output may have stopped reading: what is being printed is not waited
    // for.
    if (::ftrylockfile(stdout) != 0 || *printed) return;
    const Status interrupted = Err(StatusCode::kCancelled, "interrupted");
    std::fprintf(stderr, "%s: %s\n", program.c_str(), Message(interrupted).c_str());
    std::puts(ErrorJson(interrupted).c_str());
    std::fflush(stdout);
  };
}

int Context::Fail(const Status& status) const {
  std::fprintf(stderr, "%s: %s\n", flags_.program.c_str(), Printable(Message(status)).c_str());
  if (flags_.json && !*printed_) Print(ErrorJson(status));
  return ExitCodeOf(status);
}

int Context::FailUsage(const Status& status) const {
  (void)Fail(status);
  return kExitUsage;
}

std::string ErrorJson(const Status& status) {
  nlohmann::ordered_json error = {{"code", static_cast<int>(status.code())},
                                  {"message", Message(status)},
                                  {"reason", ReasonOf(status)}};
  if (const auto pause = RetryPauseOf(status)) {
    error["retry_after_seconds"] = std::chrono::duration<double>(*pause).count();
  }
  return nlohmann::ordered_json{{"error", error}}.dump(2, ' ', false,
                                                       nlohmann::json::error_handler_t::replace);
}

bool AsksForJson(int argc, char** argv) {
  return std::any_of(argv, argv + argc,
                     [](const char* word) { return std::string_view(word) == "--json"; });
}

StatusOr<double> ParseDuration(const std::string& text) {
  const auto seconds_of = [](char unit) { return unit == 's' ? 1 : unit == 'm' ? 60 : 3600; };
  const bool has_unit = !text.empty() && std::string_view("smh").find(text.back()) != text.npos;
  const auto value =
      ParseDouble(std::string_view(text).substr(0, text.size() - (has_unit ? 1 : 0)));
  if (!value.ok() || !(*value > 0) || !std::isfinite(*value)) {
    return Err(StatusCode::kInvalidArgument, "\"{}\" is not a duration; try 60s, 2m or 1h", text);
  }
  if (!has_unit) {
    return Err(StatusCode::kInvalidArgument, "\"{0}\" has no unit; try {0}s, {0}m or {0}h", text);
  }
  return *value * seconds_of(text.back());
}

}  // namespace ag
