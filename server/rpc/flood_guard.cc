#include "server/rpc/flood_guard.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace ag {

void FloodGuard::BeginCall(const std::string& peer) {
  MutexLock lock(mutex_);
  ++calls_[peer].open;
}

void FloodGuard::CountMessage(const std::string& peer) {
  MutexLock lock(mutex_);
  ++calls_[peer].messages;
}

void FloodGuard::EndCall(const std::string& peer) {
  MutexLock lock(mutex_);
  Calls& calls = calls_[peer];
  --calls.open;
  ++calls.ended;
}

bool FloodGuard::suspects() const {
  MutexLock lock(mutex_);
  return !floods_.empty();
}

bool FloodGuard::IsFlood(const Seen& seen, Nanos now, double passed, bool is_suspected,
                         Connection& connection) const {
  const auto found = calls_.find(seen.peer);
  const Calls calls = found == calls_.end() ? Calls{} : found->second;
  const auto received =
      static_cast<double>(seen.received - std::exchange(connection.received, seen.received));
  const auto taken = static_cast<double>(seen.taken - std::exchange(connection.taken, seen.taken));
  connection.has_message |= calls.messages > 0;

  const double explained =
      passed * kBytesPerSecond + (calls.messages + calls.ended) * message_bytes_max_;
  connection.unexplained = std::max(0.0, connection.unexplained + received - explained);
  if (connection.unexplained > (is_suspected ? 2 : kMessagesMax) * message_bytes_max_) return true;

  if (calls.open > 0 || calls.messages > 0 || calls.ended > 0) {
    connection.idle_from = now + kAfterCall;
    connection.idle = 0;
  } else if (now >= connection.idle_from) {
    connection.idle = std::max(0.0, connection.idle + taken - received / 16 - passed * 1024);
    if (connection.idle > kIdleBytes) return true;
  }

  const Nanos holds_max = is_suspected ? kHoldsMax / 6 : kHoldsMax;
  return seen.holds_acceptor >= holds_max && seen.received >= kHeldBytes && !connection.has_message;
}

std::vector<bool> FloodGuard::Look(std::span<const Seen> open, bool memory_is_full) {
  MutexLock lock(mutex_);
  const Nanos now = clock_.Now();
  const double passed = std::chrono::duration<double>(now - looked_).count();
  looked_ = now;
  absl::erase_if(floods_, [now](const auto& flood) { return now - flood.second >= kSuspicion; });
  absl::flat_hash_map<std::string, Connection> before;
  before.swap(open_);
  std::vector<bool> floods(open.size(), false);
  for (size_t i = 0; i < open.size(); ++i) {
    const std::string& peer = open[i].peer;
    if (peer.empty()) continue;
    const auto known = before.find(peer);
    // Another connection may have the name of one that is gone.
    const bool is_known = known != before.end() && known->second.received <= open[i].received;
    Connection connection = is_known ? known->second : Connection{};
    const bool is_much = is_known && open[i].received - connection.received >= kMuchReceived;
    const std::string host = peer.substr(0, peer.rfind(':'));
    const bool is_suspected = floods_.contains(host);
    const bool is_flood = IsFlood(open[i], now, passed, is_suspected, connection);
    floods[i] = is_flood || (memory_is_full && is_much);
    if (!floods[i]) open_[peer] = connection;
    if (!is_flood) continue;
    if (!is_suspected) LogWarn("{}: connections that send much and ask nothing end", host);
    floods_[host] = now;
  }
  absl::erase_if(calls_, [](const auto& calls) { return calls.second.open == 0; });
  for (auto& [peer, calls] : calls_) calls.messages = calls.ended = 0;
  return floods;
}

}  // namespace ag
