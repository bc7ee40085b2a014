// The channel of a client or a worker to a coordinator: plain or TLS, with a token for each call or
// without. Thread-safe.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "net/tls.h"

namespace grpc {
class Channel;
class ChannelArguments;
}  // namespace grpc

namespace ag {

struct ChannelOptions {
  TlsFiles tls;            // Empty: plain.
  std::string token;       // "": of token_file.
  std::string token_file;  // Read anew when it changes; "": no token.
  bool insecure = false;   // The token may go to another machine in plain text.
};

// Does not connect yet. kInvalidArgument: what is no token, or one that would leave this machine in
// plain text; errors of TlsChannelCredentials and of reading the token.
StatusOr<std::shared_ptr<grpc::Channel>> MakeChannel(const std::string& address,
                                                     const ChannelOptions& options,
                                                     const grpc::ChannelArguments& arguments);

}  // namespace ag
