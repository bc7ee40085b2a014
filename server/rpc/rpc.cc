#include "server/rpc/rpc.h"

#include <grpcpp/support/status.h>

namespace ag {

grpc::Status ToGrpc(const Status& status) {
  constexpr size_t kMessageBytes = 3500;
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                      Message(status).substr(0, kMessageBytes));
}

}  // namespace ag
