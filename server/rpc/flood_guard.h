// The guard against connections that send much and ask nothing: HTTP/2 frames that make no call
// (header blocks without an end, as CVE-2023-33953 and CVE-2024-27316; pings, settings, empty
// data). gRPC 1.51 has no bound on most of them, and a thread of it works for such a connection as
// long as there is something to read. Thread-safe.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"

namespace ag {

class FloodGuard {
 public:
  struct Seen {
    std::string peer;                  // As grpc::ServerContext::peer names it; "" is no flood.
    uint64_t received = 0, taken = 0;  // Bytes from the peer, and those to it that it has got.
    // How long the thread that has accepted it works for it and accepts no other.
    Nanos holds_acceptor{0};
  };
  // `message_bytes_max`: no message of a client is larger.
  FloodGuard(Clock& clock, int message_bytes_max)
      : clock_(clock), message_bytes_max_(message_bytes_max) {}

  // A call of the peer begins; it has sent a message; the call has ended.
  void BeginCall(const std::string& peer);
  void CountMessage(const std::string& peer);
  void EndCall(const std::string& peer);

  // Returns which of the open connections are floods. One is, if
  //   - what it has received, less `message_bytes_max` for each message and each call that ended
  //   and
  //     kBytesPerSecond, is above what kMessagesMax messages that are on their way may have; 2
  //     where its host had a flood within kSuspicion;
  //   - it has received kIdleBytes, less a thousandth of kBytesPerSecond, while it had no call, the
  //     first kAfterCall after a call left out;
  //   - it holds its acceptor for kHoldsMax, a sixth of that under suspicion, has received
  //   kHeldBytes
  //     and sent no message yet;
  //   - `memory_is_full` and it has received kMuchReceived since the last look.
  std::vector<bool> Look(std::span<const Seen> open, bool memory_is_full);

  // True: a host had a flood within kSuspicion, so it is worth looking often.
  bool suspects() const;

  static constexpr uint64_t kBytesPerSecond = 1 << 20, kMuchReceived = 2 << 10;
  static constexpr uint64_t kIdleBytes = 32 << 10, kHeldBytes = 128 << 10;
  static constexpr int kMessagesMax = 24;
  static constexpr Nanos kHoldsMax = std::chrono::milliseconds(300);
  static constexpr Nanos kAfterCall = std::chrono::seconds(5);
  static constexpr Nanos kSuspicion = std::chrono::seconds(10);

 private:
  struct Connection {
    uint64_t received = 0, taken = 0;
    double unexplained = 0, idle = 0;  // Bytes.
    bool has_message = false;
    Nanos idle_from{0};
  };
  struct Calls {
    int open = 0;
    int messages = 0, ended = 0;  // Since the last look.
  };
  // Brings `connection` up to date; returns whether it is a flood.
  bool IsFlood(const Seen& seen, Nanos now, double passed, bool is_suspected,
               Connection& connection) const AG_REQUIRES(mutex_);

  Clock& clock_;
  const double message_bytes_max_;
  mutable Mutex mutex_;
  Nanos looked_ AG_GUARDED_BY(mutex_){0};
  absl::flat_hash_map<std::string, Connection> open_ AG_GUARDED_BY(mutex_);  // By peer.
  absl::flat_hash_map<std::string, Calls> calls_ AG_GUARDED_BY(mutex_);      // By peer.
  absl::flat_hash_map<std::string, Nanos> floods_
      AG_GUARDED_BY(mutex_);  // The last within kSuspicion, by host.
};

}  // namespace ag
