// gRPC credentials from PEM files, which are read anew while the program runs. Thread-safe.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"

namespace grpc {
class ChannelCredentials;
class ServerCredentials;
}  // namespace grpc

namespace ag {

struct TlsFiles {
  std::string cert;  // The own certificate and what signed it up to the root,
  std::string key;   // and its private key, without a passphrase. Both or neither.
  std::string ca;    // Whose certificates are believed: of a server all must be signed by these.
  int reload_seconds = 10;  // How often the files are looked at, at least 1.

  bool IsEmpty() const { return cert.empty() && key.empty() && ca.empty(); }
};

// Returns credentials of a server, which needs `cert` and `key`; with `ca` a client without a
// certificate signed by it gets no connection (mutual TLS). Looks at the files first.
// kInvalidArgument: cert or key is missing, a file is no PEM, or the key is another certificate's;
// kFailedPrecondition: the certificate is not valid now; errors of reading.
StatusOr<std::shared_ptr<grpc::ServerCredentials>> TlsServerCredentials(const TlsFiles& files);

// The same for a client, which needs `ca`; `cert` and `key` are for servers that ask for them.
StatusOr<std::shared_ptr<grpc::ChannelCredentials>> TlsChannelCredentials(const TlsFiles& files);

}  // namespace ag
