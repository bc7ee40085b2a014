// The sockets at which the server listens. gRPC never accepts again once it has run out of
// descriptors, and has no bound on its connections, so connections are accepted here, within
// bounds, and handed over. Start and Stop belong to one thread.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/handle.h"
#include "base/status.h"
#include "server/rpc/flood_guard.h"

struct sockaddr_storage;
namespace grpc::experimental {
class ExternalConnectionAcceptor;
}

namespace ag {

struct ConnectionLimits {
  int in_all = 0;    // 0: what the limit of descriptors leaves (ConnectionsFor).
  int per_host = 0;  // From one address; 0: half of `in_all`.
  // While the process's memory, without mapped files, is above this, no connection is accepted, and
  // those that send much are ended (FloodGuard): gRPC 1.51 has no bound on calls that were begun
  // and reset (CVE-2023-44487).
  int64_t memory_max = int64_t{1} << 30;
};

// The connections that a process with this limit of descriptors may have open: the rest is for
// files, databases and children.
int ConnectionsFor(int64_t descriptors_max);

class Listener {
 public:
  // Binds and listens at HOST:PORT or unix:PATH. Errors as ListenError. The connections that
  // `floods` tells are ended.
  static StatusOr<std::unique_ptr<Listener>> Bind(const std::string& address,
                                                  const ConnectionLimits& limits,
                                                  FloodGuard& floods);
  ~Listener();  // Calls Stop.

  int port() const { return port_; }  // 0 for unix:PATH.

  // Accepts from now on. A connection above a bound is closed at once. The acceptor outlives Stop.
  void Start(grpc::experimental::ExternalConnectionAcceptor& acceptor);
  void Stop();  // Closes the sockets: nothing is accepted any more. Connections stay.

  bool memory_is_full() const { return memory_is_full_; }

  // Ends the connection of `peer`, as grpc::ServerContext::peer names it ("ipv4:10.0.0.7:50000"),
  // with what it has sent and nobody has read. Thread-safe; takes time linear in the descriptors.
  void EndConnection(const std::string& peer);

 private:
  explicit Listener(FloodGuard& floods) : floods_(floods) {}
  Status BindTcp(const std::string& host, int port);
  Status BindUnix(const std::string& path);
  void Main(grpc::experimental::ExternalConnectionAcceptor& acceptor);
  void AcceptAll(int socket, grpc::experimental::ExternalConnectionAcceptor& acceptor);
  bool HasRoomFor(int connection);
  void WatchConnections();
  void LookAtMemory();
  void EndFloods();
  void ForEachOpen(const std::function<void(int fd, const sockaddr_storage& peer)>& what) const;
  void CountOpen();

  ConnectionLimits limits_;
  std::vector<Fd> sockets_;
  std::string unix_path_;
  int port_ = 0;
  Fd wake_;
  std::thread thread_;

  // Connections that were open at the last count, with those accepted since; by host.
  std::map<std::string, int> open_;
  int open_in_all_ = 0;
  Nanos counted_{0};

  FloodGuard& floods_;
  std::atomic<int> handed_over_ = -1;  // The descriptor that gRPC is being given.
  std::atomic<Nanos> handed_over_since_{};
  std::atomic<bool> memory_is_full_ = false;
  std::thread watch_thread_;
};

}  // namespace ag
