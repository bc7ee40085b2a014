// Errors on the wire: a gRPC status with google.rpc.ErrorInfo and, where calling again may help,
// google.rpc.RetryInfo (proto/autograph/v1/error.proto). Pure functions.
#pragma once

#include "base/status.h"

namespace grpc {
class Status;
}

namespace ag {

// Returns the status for gRPC, its message cut to the size of a header, with the reason and the
// pause of base/reason.h.
grpc::Status ToGrpc(const Status& status);

// Returns the status of a call, with the reason and the pause that its details have. Details that
// do not decode are left out.
Status FromGrpc(const grpc::Status& status);

}  // namespace ag
