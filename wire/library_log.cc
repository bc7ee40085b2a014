#include "wire/library_log.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>

#include <string>

#include "base/log.h"

namespace ag {
namespace {

void TakeFromGrpc(gpr_log_func_args* line) {
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
