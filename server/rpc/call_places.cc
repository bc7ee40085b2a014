#include "server/rpc/call_places.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/server_interceptor.h>

#include <string>
#include <string_view>

namespace ag {
namespace {

using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::Interceptor;
using grpc::experimental::InterceptorBatchMethods;
using grpc::experimental::ServerRpcInfo;

constexpr std::string_view kHealth = "/grpc.health.", kReflection = "/grpc.reflection.";

// All hooks of a call of the synchronous services run in one thread at a time. Calls of health hold
// no thread and take no place.
class PlaceOfCall final : public Interceptor {
 public:
  PlaceOfCall(Places& calls, FailureGuard& failures, FloodGuard& floods, ServerRpcInfo& call)
      : calls_(calls),
        failures_(failures),
        floods_(floods),
        call_(call),
        begin_(std::string_view(call.method()).starts_with(kReflection)
                   ? InterceptionHookPoints::POST_RECV_INITIAL_METADATA
                   : InterceptionHookPoints::PRE_SEND_STATUS),
        takes_place_(!std::string_view(call.method()).starts_with(kHealth)) {}

  ~PlaceOfCall() override {
    if (!peer_.empty()) floods_.EndCall(peer_);
  }

  void Intercept(InterceptorBatchMethods* methods) override {
    Count(*methods);
    if (takes_place_ && methods->QueryInterceptionHookPoint(begin_) && place_ == nullptr &&
        !is_over_) {
      Enter();
    }
    // The client has left or has its answer. This may come before the status is sent; the call's
    // context may be gone soon after both.
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_CLOSE)) {
      is_over_ = true;
      place_.reset();
    }
    methods->Proceed();
  }

 private:
  // A client that sends no message, or is not there for the answer, has reset its call. (A context
  // must not be asked in a hook whether it is cancelled: gRPC waits for its end then, twice.)
  void Count(InterceptorBatchMethods& methods) {
    if (methods.QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_INITIAL_METADATA)) {
      peer_ = call_.server_context()->peer();
      floods_.BeginCall(peer_);
    }
    if (methods.QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_MESSAGE)) {
      has_message_ |= methods.GetRecvMessage() != nullptr;
      floods_.CountMessage(peer_);
    }
    if (methods.QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS) &&
        !methods.GetSendStatus().ok()) {
      has_message_ ? failures_.CountError(peer_) : failures_.CountReset(peer_);
    }
    if (methods.QueryInterceptionHookPoint(InterceptionHookPoints::POST_SEND_MESSAGE) &&
        !methods.GetSendMessageStatus()) {
      failures_.CountReset(peer_);
    }
  }
  void Enter() {
    auto entered = calls_.Enter(*call_.server_context());
    if (!entered.ok()) return call_.server_context()->TryCancel();
    place_ = *std::move(entered);
  }

  Places& calls_;
  FailureGuard& failures_;
  FloodGuard& floods_;
  ServerRpcInfo& call_;
  const InterceptionHookPoints begin_;
  const bool takes_place_;
  std::string peer_;
  std::unique_ptr<Places::Place> place_;
  bool has_message_ = false, is_over_ = false;
};

class PlacesOfCalls final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  PlacesOfCalls(Places& calls, FailureGuard& failures, FloodGuard& floods)
      : calls_(calls), failures_(failures), floods_(floods) {}

  Interceptor* CreateServerInterceptor(ServerRpcInfo* call) override {
    return new PlaceOfCall(calls_, failures_, floods_, *call);
  }

 private:
  Places& calls_;
  FailureGuard& failures_;
  FloodGuard& floods_;
};

}  // namespace

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeCallPlaces(
    Places& calls, FailureGuard& failures, FloodGuard& floods) {
  return std::make_unique<PlacesOfCalls>(calls, failures, floods);
}

}  // namespace ag
