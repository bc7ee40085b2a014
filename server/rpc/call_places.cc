#include "server/rpc/call_places.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/server_interceptor.h>

#include <string_view>

namespace ag {
namespace {

using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::Interceptor;
using grpc::experimental::InterceptorBatchMethods;
using grpc::experimental::ServerRpcInfo;

constexpr std::string_view kHealth = "/grpc.health.", kReflection = "/grpc.reflection.";

// All hooks of a call of the synchronous services run in one thread at a time.
class PlaceOfCall final : public Interceptor {
 public:
  PlaceOfCall(Places& calls, ServerRpcInfo& call)
      : calls_(calls),
        call_(call),
        begin_(std::string_view(call.method()).starts_with(kReflection)
                   ? InterceptionHookPoints::POST_RECV_INITIAL_METADATA
                   : InterceptionHookPoints::PRE_SEND_STATUS) {}

  void Intercept(InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(begin_) && place_ == nullptr && !is_over_) Enter();
    // The client has left or has its answer. This may come before the status is sent; the call's
    // context may be gone soon after both.
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_CLOSE)) {
      is_over_ = true;
      place_.reset();
    }
    methods->Proceed();
  }

 private:
  void Enter() {
    auto entered = calls_.Enter(*call_.server_context());
    if (!entered.ok()) return call_.server_context()->TryCancel();
    place_ = *std::move(entered);
  }

  Places& calls_;
  ServerRpcInfo& call_;
  const InterceptionHookPoints begin_;
  std::unique_ptr<Places::Place> place_;
  bool is_over_ = false;
};

class PlacesOfCalls final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit PlacesOfCalls(Places& calls) : calls_(calls) {}

  Interceptor* CreateServerInterceptor(ServerRpcInfo* call) override {
    // Calls of health hold no thread.
    if (std::string_view(call->method()).starts_with(kHealth)) return nullptr;
    return new PlaceOfCall(calls_, *call);
  }

 private:
  Places& calls_;
};

}  // namespace

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeCallPlaces(
    Places& calls) {
  return std::make_unique<PlacesOfCalls>(calls);
}

}  // namespace ag
