#include "wire/library_log.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/no_memory.h"

namespace ag {
namespace {

// gRPC asserts that the threads of its server start, and aborts the process where one does not.
constexpr std::string_view kNoThread = "assertion failed: worker->created()";

// gRPC writes a line for each handshake that fails, so whoever reaches the port could fill a disk.
class LineBound {
 public:
  bool HasRoom() {
    MutexLock lock(mutex_);
    const Nanos now = RealClock().Now();
    if (!began_.has_value() || now - *began_ >= std::chrono::minutes(1)) {
      if (lines_ > kLinesOfMinute) {
        LogWarn("{} lines of gRPC and protobuf were left out", lines_ - kLinesOfMinute);
      }
      began_ = now;
      lines_ = 0;
    }
    if (++lines_ == kLinesOfMinute + 1) {
      LogWarn("more than {} lines of gRPC and protobuf in a minute: others are left out",
              kLinesOfMinute);
    }
    return lines_ <= kLinesOfMinute;
  }

 private:
  static constexpr int64_t kLinesOfMinute = 100;
  Mutex mutex_;
  std::optional<Nanos> began_ AG_GUARDED_BY(mutex_);
  int64_t lines_ AG_GUARDED_BY(mutex_) = 0;
};

LineBound& Lines() {
  static auto* const kLines = new LineBound;  // Threads log until the end.
  return *kLines;
}

void TakeFromGrpc(gpr_log_func_args* line) {
  if (line->message == kNoThread) EndWithoutMemory();
  if (!Lines().HasRoom()) return;
  if (line->severity == GPR_LOG_SEVERITY_ERROR) {
    LogError("gRPC: {} ({}:{})", line->message, line->file, line->line);
  } else {
    LogInfo("gRPC: {} ({}:{})", line->message, line->file, line->line);
  }
}

// After a fatal line protobuf ends the process itself.
void TakeFromProtobuf(google::protobuf::LogLevel level, const char* file, int line,
                      const std::string& message) {
  if (level != google::protobuf::LOGLEVEL_FATAL && !Lines().HasRoom()) return;
  switch (level) {
    case google::protobuf::LOGLEVEL_INFO:
      return LogInfo("protobuf: {} ({}:{})", message, file, line);
    case google::protobuf::LOGLEVEL_WARNING:
      return LogWarn("protobuf: {} ({}:{})", message, file, line);
    case google::protobuf::LOGLEVEL_ERROR:
    case google::protobuf::LOGLEVEL_FATAL:
      return LogError("protobuf: {} ({}:{})", message, file, line);
  }
}

}  // namespace

void RouteLibraryLogs() {
  gpr_set_log_function(TakeFromGrpc);
  google::protobuf::SetLogHandler(TakeFromProtobuf);
}

}  // namespace ag
