// The guard against clients that begin calls and reset them as fast as they can (CVE-2023-44487).
// gRPC 1.51 keeps some 15 KB of each until a thread has looked at it, without a bound: 240,000 of
// them took 3.8 GB. The first of them tell, while thousands wait. Thread-safe.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <functional>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"

namespace ag {

class FailureGuard {
 public:
  // `end` closes the connection of a peer, in the words of grpc::ServerContext::peer.
  FailureGuard(Clock& clock, std::function<void(const std::string& peer)> end)
      : clock_(clock), end_(std::move(end)) {}

  // Counts a call that its client has reset, or one that ended with an error and may have been.
  // Above kResetsMax of one host within a second, or as many errors as kErrorsOfReset times that,
  // each ends its connection, which is done once in that second and leaves connections alone that
  // had fewer than kResetsMin themselves: they are of others behind the same address. A peer
  // without a host (unix:PATH) is not counted.
  void CountReset(const std::string& peer) { Count(peer, kErrorsOfReset); }
  void CountError(const std::string& peer) { Count(peer, 1); }

  static constexpr int kResetsMax = 100, kResetsMin = 2, kErrorsOfReset = 10;

 private:
  void Count(const std::string& peer, int errors);

  Clock& clock_;
  const std::function<void(const std::string& peer)> end_;
  Mutex mutex_;
  Nanos began_ AG_GUARDED_BY(mutex_){0};  // The second that is counted.
  absl::flat_hash_map<std::string, int> errors_ AG_GUARDED_BY(mutex_);  // By host, and by peer.
  absl::flat_hash_set<std::string> ended_ AG_GUARDED_BY(mutex_);        // Peers, and their hosts.
};

}  // namespace ag
