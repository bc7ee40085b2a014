// What is looked at in every call. Places for the calls that should be short: gRPC gives a thread
// to each until its answer was taken, and a client may never take it. And calls that fail, and
// messages, which are counted. Thread-safe.
#pragma once

#include <memory>

#include "server/rpc/failure_guard.h"
#include "server/rpc/flood_guard.h"
#include "server/rpc/places.h"

namespace grpc::experimental {
class ServerInterceptorFactoryInterface;
}

namespace ag {

// Returns what makes interceptors for a server: a call takes a place when its status is sent, a
// stream of reflection when it begins; one that finds none is ended. All outlive the server.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeCallPlaces(
    Places& calls, FailureGuard& failures, FloodGuard& floods);

}  // namespace ag
