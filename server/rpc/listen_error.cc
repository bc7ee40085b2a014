#include "server/rpc/listen_error.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "base/file.h"
#include "base/handle.h"
#include "base/text.h"
#include "net/address.h"

namespace ag {
namespace {

constexpr std::string_view kUnix = "unix:";
constexpr int64_t kPrivilegedBelow = 1024;

// Returns an errno value, or 0 when the socket could be bound.
int TryBind(int family, const sockaddr* address, socklen_t size) {
  const Fd socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return errno;
  return ::bind(socket.get(), address, size) == 0 ? 0 : errno;
}

int TryBindUnix(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return ENAMETOOLONG;
  std::memcpy(address.sun_path, path.data(), path.size());
  const int error = TryBind(AF_UNIX, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  if (error == 0) ::unlink(path.c_str());
  return error;
}

Status Cannot(const std::string& address, int error, const std::string& hint) {
  if (error == 0) return Err(StatusCode::kInternal, "cannot listen on {}", address);
  if (error == EADDRINUSE) {
    return Err(StatusCode::kUnavailable, "cannot listen on {}: address in use", address);
  }
  if (error == EACCES || error == EPERM) {
    return Err(StatusCode::kFailedPrecondition, "cannot listen on {}: permission denied{}", address,
               hint);
  }
  return Err(StatusCode::kFailedPrecondition, "{}",
             Message(FromErrno(error, "cannot listen on " + address)));
}

}  // namespace

std::string BoundAddress(const std::string& address, int port) {
  if (address.starts_with(kUnix)) return address;
  return fmt::format("{}:{}", address.substr(0, address.rfind(':')), port);
}

Status ListenError(const std::string& address) {
  if (const Status form = CheckListenAddress(address); !form.ok()) {
    return Err(form.code(), "cannot listen on {}", Message(form));
  }
  if (address.starts_with(kUnix)) {
    return Cannot(address, TryBindUnix(address.substr(kUnix.size())), "");
  }
  const size_t colon = address.rfind(':');
  std::string host = address.substr(0, colon);
  if (host.starts_with("[") && host.ends_with("]")) host = host.substr(1, host.size() - 2);
  const auto port = ParseInt(address.substr(colon + 1));
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int failed = ::getaddrinfo(host.empty() ? nullptr : host.c_str(),
                                   fmt::to_string(*port).c_str(), &hints, &found);
  if (failed != 0) {
    return Err(StatusCode::kInvalidArgument, "cannot listen on {}: {}", address,
               ::gai_strerror(failed));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, ::freeaddrinfo);
  const std::string hint =
      *port < kPrivilegedBelow ? " (ports below 1024 are the administrator's)" : "";
  return Cannot(address, TryBind(found->ai_family, found->ai_addr, found->ai_addrlen), hint);
}

}  // namespace ag
