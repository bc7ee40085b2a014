#include "server/rpc/failure_guard.h"

#include "base/log.h"

namespace ag {

void FailureGuard::Count(const std::string& peer, int errors) {
  constexpr int kErrorsMax = kResetsMax * kErrorsOfReset;
  constexpr int kErrorsMin = kResetsMin * kErrorsOfReset;
  if (!peer.starts_with("ipv4:") && !peer.starts_with("ipv6:")) return;
  const std::string host = peer.substr(0, peer.rfind(':'));
  bool is_news = false;
  {
    MutexLock lock(mutex_);
    const Nanos now = clock_.Now();
    if (now - began_ >= std::chrono::seconds(1)) {
      began_ = now;
      errors_.clear();
      ended_.clear();
    }
    const int own = errors_[peer] += errors, all = errors_[host] += errors;
    // Thousands of calls of a connection that has ended may still come.
    if (all <= kErrorsMax || own < kErrorsMin || !ended_.insert(peer).second) return;
    is_news = ended_.insert(host).second;
  }
  if (is_news) {
    LogWarn("{}: too many calls in a second were reset or have failed: such connections end", host);
  }
  end_(peer);
}

}  // namespace ag
