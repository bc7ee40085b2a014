#include "server/rpc/decode_errors.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/server_interceptor.h>

#include <string>

#include "base/reason.h"
#include "net/error_details.h"

namespace ag {
namespace {

using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::Interceptor;
using grpc::experimental::InterceptorBatchMethods;
using grpc::experimental::ServerRpcInfo;

// gRPC has no thread for a call, or a message is beyond the bounds of proto/decode_bounds.h.
Status OfLibrary(const grpc::Status& status) {
  if (status.error_code() != grpc::StatusCode::RESOURCE_EXHAUSTED) return FromGrpc(status);
  return RetryAfter(std::chrono::seconds(1),
                    Because(Reason::kTooManyCalls,
                            Err(StatusCode::kResourceExhausted, "too many calls at once")));
}

// Statuses of ours have a text (ToGrpc), and INTERNAL without one is how gRPC says that it could
// not decode.
class DecodeErrorText final : public Interceptor {
 public:
  explicit DecodeErrorText(const char* method) : method_(method) {}

  void Intercept(InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS)) {
      const grpc::Status status = methods->GetSendStatus();
      if (status.error_code() == grpc::StatusCode::INTERNAL && status.error_message().empty()) {
        methods->ModifySendStatus(ToGrpc(Because(
            Reason::kRequestUndecodable,
            Err(StatusCode::kInvalidArgument, "the request of {} does not decode", method_))));
      } else if (!status.ok() && status.error_details().empty()) {
        methods->ModifySendStatus(ToGrpc(OfLibrary(status)));
      }
    }
    methods->Proceed();
  }

 private:
  const std::string method_;
};

class Factory final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  Interceptor* CreateServerInterceptor(ServerRpcInfo* info) override {
    return new DecodeErrorText(info->method());
  }
};

}  // namespace

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeDecodeErrorTexts() {
  return std::make_unique<Factory>();
}

}  // namespace ag
