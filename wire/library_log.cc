#include "wire/library_log.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>

#include <string>
#include <string_view>

#include "base/log.h"
#include "base/no_memory.h"

namespace ag {
namespace {

// gRPC asserts that the threads of its server start, and aborts the process where one does not.
constexpr std::string_view kNoThread = "assertion failed: worker->created()";

void TakeFromGrpc(gpr_log_func_args* line) {
  if (line->message == kNoThread) EndWithoutMemory();
  if (line->severity == GPR_LOG_SEVERITY_ERROR) {
    LogError("gRPC: {} ({}:{})", line->message, line->file, line->line);
  } else {
    LogInfo("gRPC: {} ({}:{})", line->message, line->file, line->line);
  }
}

// After a fatal line protobuf ends the process itself.
void TakeFromProtobuf(google::protobuf::LogLevel level, const char* file, int line,
                      const std::string& message) {
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
