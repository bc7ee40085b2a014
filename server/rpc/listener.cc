#include "server/rpc/listener.h"

#include <arpa/inet.h>
#include <grpcpp/grpcpp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "net/address.h"
#include "server/rpc/listen_error.h"

namespace ag {
namespace {

using grpc::experimental::ExternalConnectionAcceptor;

constexpr std::string_view kUnixScheme = "unix:";
constexpr int kBacklog = 1024;
constexpr int kReserve = 384;  // Descriptors for everything else.
constexpr int kConnectionsMin = 16, kConnectionsMax = 10'000;
constexpr Nanos kCountEvery = std::chrono::milliseconds(100);
constexpr int kPauseMs = 50;                 // After an accept that failed for want of descriptors.
constexpr int kLookMs = 100, kOftenMs = 20;  // At what connections have sent.
// tcp_info::tcpi_bytes_acked and tcpi_bytes_received of linux/tcp.h, which glibc's netinet/tcp.h
// lacks: two numbers of 64 bits.
constexpr size_t kBytesAt = 120;

// The socket's own or its peer's address as text without the port; "" when there is none.
std::string HostOf(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    const auto& in = reinterpret_cast<const sockaddr_in&>(address);
    ::inet_ntop(AF_INET, &in.sin_addr, text, sizeof(text));
  } else if (address.ss_family == AF_INET6) {
    const auto& in6 = reinterpret_cast<const sockaddr_in6&>(address);
    ::inet_ntop(AF_INET6, &in6.sin6_addr, text, sizeof(text));
  } else {
    return "local";
  }
  return text;
}

int PortOf(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
  }
  if (address.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  }
  return 0;
}

sockaddr_storage LocalOf(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) address = {};
  return address;
}

// False: the descriptor is no connected socket.
bool PeerOf(int fd, sockaddr_storage* address) {
  socklen_t size = sizeof(*address);
  *address = {};
  return ::getpeername(fd, reinterpret_cast<sockaddr*>(address), &size) == 0;
}

// Returns the peer's name as gRPC has it; "" for others than TCP's.
std::string NameOf(const sockaddr_storage& peer) {
  const std::string host = HostOf(peer);
  if (peer.ss_family == AF_INET) return fmt::format("ipv4:{}:{}", host, PortOf(peer));
  if (peer.ss_family == AF_INET6) return fmt::format("ipv6:%5B{}%5D:{}", host, PortOf(peer));
  return "";
}

// What passed over a TCP connection so far; zeros where the kernel does not say.
FloodGuard::Seen Look(int fd, const sockaddr_storage& peer) {
  FloodGuard::Seen seen{.peer = NameOf(peer)};
  char info[256] = {};
  socklen_t size = sizeof(info);
  uint64_t bytes[2] = {};
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &size) != 0) return seen;
  if (size < kBytesAt + sizeof(bytes)) return seen;
  std::memcpy(bytes, info + kBytesAt, sizeof(bytes));
  seen.taken = bytes[0];
  seen.received = bytes[1];
  return seen;
}

// gRPC owns the descriptor: it is disconnected, not closed.
void Disconnect(int fd) {
  sockaddr none{};
  none.sa_family = AF_UNSPEC;
  (void)::connect(fd, &none, sizeof(none));
}

// The process's memory without mapped files, which models and databases are.
int64_t OwnBytes() {
  const auto statm = ReadFile("/proc/self/statm");
  if (!statm.ok()) return 0;
  const auto words = Split(*statm, ' ');  // In pages: all, resident, of these shared, ...
  if (words.size() < 3) return 0;
  const auto resident = ParseInt(words[1]), shared = ParseInt(words[2]);
  if (!resident.ok() || !shared.ok()) return 0;
  return (*resident - *shared) * ::sysconf(_SC_PAGESIZE);
}

int64_t DescriptorsMax() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  return static_cast<int64_t>(std::min<rlim_t>(limit.rlim_cur, 1 << 20));
}

}  // namespace

int ConnectionsFor(int64_t descriptors_max) {
  return static_cast<int>(
      std::clamp<int64_t>(descriptors_max - kReserve, kConnectionsMin, kConnectionsMax));
}

StatusOr<std::unique_ptr<Listener>> Listener::Bind(const std::string& address,
                                                   const ConnectionLimits& limits,
                                                   FloodGuard& floods) {
  if (!CheckListenAddress(address).ok()) return ListenError(address);
  std::unique_ptr<Listener> listener(new Listener(floods));
  listener->limits_ = limits;
  if (limits.in_all == 0) listener->limits_.in_all = ConnectionsFor(DescriptorsMax());
  if (limits.per_host == 0) listener->limits_.per_host = (listener->limits_.in_all + 1) / 2;
  Status bound;
  if (address.starts_with(kUnixScheme)) {
    bound = listener->BindUnix(address.substr(kUnixScheme.size()));
  } else {
    const size_t colon = address.rfind(':');
    std::string host = address.substr(0, colon);
    if (host.starts_with("[") && host.ends_with("]")) host = host.substr(1, host.size() - 2);
    bound = listener->BindTcp(host, static_cast<int>(*ParseInt(address.substr(colon + 1))));
  }
  // Bound once more for the reason; where there is none any more, ours is said.
  if (!bound.ok()) {
    listener->sockets_.clear();  // What was bound is not to be in the way.
    const Status why = ListenError(address);
    return why.code() == StatusCode::kInternal ? Within(bound, "listen on " + address) : why;
  }
  listener->wake_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!listener->wake_) return FromErrno(errno, "eventfd");
  return listener;
}

Status Listener::BindTcp(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int failed = ::getaddrinfo(host.empty() ? nullptr : host.c_str(),
                                   fmt::to_string(port).c_str(), &hints, &found);
  if (failed != 0) return Err(StatusCode::kInvalidArgument, "{}", ::gai_strerror(failed));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, ::freeaddrinfo);
  for (addrinfo* at = found; at != nullptr; at = at->ai_next) {
    Fd socket(::socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket && errno == EAFNOSUPPORT && at->ai_next != nullptr) continue;
    if (!socket) return FromErrno(errno, "socket");
    const int on = 1;
    (void)::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (at->ai_family == AF_INET6) {
      (void)::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
      if (port_ != 0) reinterpret_cast<sockaddr_in6*>(at->ai_addr)->sin6_port = htons(port_);
    } else if (port_ != 0) {  // All addresses get the port of the first.
      reinterpret_cast<sockaddr_in*>(at->ai_addr)->sin_port = htons(port_);
    }
    const bool is_bound = ::bind(socket.get(), at->ai_addr, at->ai_addrlen) == 0 &&
                          ::listen(socket.get(), kBacklog) == 0;
    const bool has_other = at->ai_next != nullptr || !sockets_.empty();
    if (!is_bound && errno == EADDRNOTAVAIL && has_other) continue;  // IPv6 is switched off.
    if (!is_bound) return FromErrno(errno, "bind");
    port_ = PortOf(LocalOf(socket.get()));
    sockets_.push_back(std::move(socket));
  }
  return sockets_.empty() ? Err(StatusCode::kFailedPrecondition, "no address") : OkStatus();
}

// A socket that a dead process left is replaced, as gRPC does it.
Status Listener::BindUnix(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return FromErrno(ENAMETOOLONG, "bind");
  std::memcpy(address.sun_path, path.data(), path.size());
  struct stat info {};
  if (::lstat(path.c_str(), &info) == 0 && S_ISSOCK(info.st_mode)) ::unlink(path.c_str());
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return FromErrno(errno, "socket");
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      ::listen(socket.get(), kBacklog) != 0) {
    return FromErrno(errno, "bind");
  }
  unix_path_ = path;
  sockets_.push_back(std::move(socket));
  return OkStatus();
}

Listener::~Listener() { Stop(); }

void Listener::Start(ExternalConnectionAcceptor& acceptor) {
  thread_ = std::thread([this, &acceptor] { Main(acceptor); });
  watch_thread_ = std::thread([this] { WatchConnections(); });
}

void Listener::Stop() {
  if (thread_.joinable()) {
    const uint64_t one = 1;
    AG_CHECK(::write(wake_.get(), &one, sizeof(one)) == sizeof(one));
    thread_.join();
    watch_thread_.join();
  }
  if (!unix_path_.empty() && !sockets_.empty()) ::unlink(unix_path_.c_str());
  sockets_.clear();
}

void Listener::Main(ExternalConnectionAcceptor& acceptor) {
  std::vector<pollfd> polled = {{wake_.get(), POLLIN, 0}};
  for (const Fd& socket : sockets_) polled.push_back({socket.get(), POLLIN, 0});
  while (true) {
    if (::poll(polled.data(), polled.size(), -1) < 0) continue;  // EINTR.
    if (polled[0].revents != 0) return;
    for (size_t i = 1; i < polled.size(); ++i) {
      if (polled[i].revents != 0) AcceptAll(polled[i].fd, acceptor);
    }
  }
}

void Listener::AcceptAll(int socket, ExternalConnectionAcceptor& acceptor) {
  while (true) {
    Fd connection(::accept4(socket, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!connection) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        ::poll(nullptr, 0, kPauseMs);  // What waits is accepted once there are descriptors again.
      }
      return;
    }
    if (!HasRoomFor(connection.get())) continue;  // Closed at once.
    const int on = 1;
    (void)::setsockopt(connection.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    ExternalConnectionAcceptor::NewConnectionParameters parameters;
    parameters.listener_fd = socket;
    parameters.fd = connection.release();
    handed_over_since_ = RealClock().Now();
    handed_over_ = parameters.fd;
    acceptor.HandleNewConnection(&parameters);
    handed_over_ = -1;
  }
}

bool Listener::HasRoomFor(int connection) {
  sockaddr_storage peer{};
  if (!PeerOf(connection, &peer)) return false;  // It has left.
  if (memory_is_full_) return false;
  const std::string host = HostOf(peer);
  const auto is_full = [&] {
    return open_in_all_ >= limits_.in_all || open_[host] >= limits_.per_host;
  };
  if (is_full() && RealClock().Now() - counted_ >= kCountEvery) CountOpen();
  if (is_full()) return false;
  ++open_in_all_;
  ++open_[host];
  return true;
}

// gRPC does not say when it closes a connection, so the open ones are found among the process's
// descriptors: sockets with a peer whose own address is one at which we listen.
void Listener::ForEachOpen(
    const std::function<void(int fd, const sockaddr_storage& peer)>& what) const {
  const StatusOr<std::vector<std::string>> names = ListDir("/proc/self/fd");
  if (!names.ok()) return LogWarn("connections are not found: {}", Message(names.status()));
  for (const std::string& name : *names) {
    const auto fd = ParseInt(name);
    sockaddr_storage peer{};
    if (!fd.ok() || !PeerOf(static_cast<int>(*fd), &peer)) continue;
    const sockaddr_storage local = LocalOf(static_cast<int>(*fd));
    const bool is_ours =
        unix_path_.empty() ? port_ != 0 && PortOf(local) == port_
                           : local.ss_family == AF_UNIX &&
                                 unix_path_ == reinterpret_cast<const sockaddr_un&>(local).sun_path;
    if (is_ours) what(static_cast<int>(*fd), peer);
  }
}

void Listener::CountOpen() {
  counted_ = RealClock().Now();
  open_.clear();
  open_in_all_ = 0;
  ForEachOpen([this](int, const sockaddr_storage& peer) {
    ++open_in_all_;
    ++open_[HostOf(peer)];
  });
}

void Listener::EndConnection(const std::string& peer) {
  ForEachOpen([&](int fd, const sockaddr_storage& at) {
    if (NameOf(at) == peer) Disconnect(fd);
  });
}

// A thread of its own: one that hands a connection to gRPC also works for it, for as long as there
// is something to read.
void Listener::WatchConnections() {
  pollfd wake{wake_.get(), POLLIN, 0};
  while (::poll(&wake, 1, floods_.suspects() ? kOftenMs : kLookMs) <= 0) {
    LookAtMemory();
    EndFloods();
  }
}

void Listener::LookAtMemory() {
  const int64_t bytes = OwnBytes();
  const bool was_full = memory_is_full_.exchange(bytes > limits_.memory_max);
  if (!memory_is_full_ || was_full) return;
  LogWarn("{} MiB of memory are used: connections that send much are ended", bytes >> 20);
}

void Listener::EndFloods() {
  std::vector<int> fds;
  std::vector<FloodGuard::Seen> open;
  const int held = handed_over_;
  const Nanos holds = RealClock().Now() - handed_over_since_.load();
  ForEachOpen([&](int fd, const sockaddr_storage& peer) {
    fds.push_back(fd);
    open.push_back(Look(fd, peer));
    if (fd == held) open.back().holds_acceptor = holds;
  });
  const std::vector<bool> floods = floods_.Look(open, memory_is_full_);
  for (size_t i = 0; i < fds.size(); ++i) {
    sockaddr_storage peer{};  // Looked at again: the descriptor may be another connection's by now.
    if (floods[i] && PeerOf(fds[i], &peer) && NameOf(peer) == open[i].peer) Disconnect(fds[i]);
  }
}

}  // namespace ag
