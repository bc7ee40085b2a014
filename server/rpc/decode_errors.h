// The text of the error that a call gets whose message does not decode. gRPC sends it without one.
// Thread-safe.
#pragma once

#include <memory>

namespace grpc::experimental {
class ServerInterceptorFactoryInterface;
}

namespace ag {

// Returns what makes interceptors for a server: a status that gRPC itself sends without a text
// becomes INVALID_ARGUMENT, with the method whose request does not decode.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeDecodeErrorTexts();

}  // namespace ag
