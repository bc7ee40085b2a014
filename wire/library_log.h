// The log lines of gRPC and protobuf, which both write to stderr in forms of their own, as lines of
// base/log.h.
#pragma once

namespace ag {

// Sends what the libraries log from here on through LogError, LogWarn and LogInfo, at most 100
// lines a minute. What gRPC logs at all is for GRPC_VERBOSITY to say, as without this. Where gRPC
// would abort because a thread does not start, the program ends as for want of memory
// (base/no_memory.h). REQUIRES: called before other threads start.
void RouteLibraryLogs();

}  // namespace ag
