#include "server/rpc/transfers.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>

#include "base/reason.h"

namespace ag {
namespace {

// Enough for a client on a slow line to send its next megabyte.
constexpr Nanos kMakesRoom = std::chrono::seconds(1);

Status TooMany(Status status) {
  return RetryAfter(kMakesRoom, Because(Reason::kTooManyTransfers, std::move(status)));
}

}  // namespace

// "": of all connections.
int Transfers::Count(const std::string& peer) {
  return static_cast<int>(std::ranges::count_if(entries_, [&](const Entry& entry) {
    return !entry.ended && (peer.empty() || entry.peer == peer);
  }));
}

bool Transfers::EndLongestIdle(Nanos idle_min, const std::string& peer) {
  const Nanos now = clock_.Now();
  Entry* longest = nullptr;
  for (Entry& entry : entries_) {
    if (entry.ended || now - entry.moved < idle_min) continue;
    if (!peer.empty() && entry.peer != peer) continue;
    if (longest == nullptr || entry.moved < longest->moved) longest = &entry;
  }
  if (longest == nullptr) return false;
  longest->ended = true;
  longest->context->TryCancel();
  return true;
}

StatusOr<std::unique_ptr<Transfers::Place>> Transfers::Enter(grpc::ServerContext& context) {
  const std::string peer = context.peer();
  MutexLock lock(mutex_);
  if (Count(peer) >= limits_.per_peer && !EndLongestIdle(kMakesRoom, peer)) {
    return TooMany(Err(StatusCode::kResourceExhausted,
                       "{} transfers of this connection are open already", limits_.per_peer));
  }
  if (Count("") >= limits_.in_all && !EndLongestIdle(kMakesRoom, "")) {
    return TooMany(
        Err(StatusCode::kResourceExhausted, "{} transfers are open already", limits_.in_all));
  }
  entries_.push_back({&context, peer, clock_.Now(), false});
  return std::make_unique<Place>(*this, std::prev(entries_.end()));
}

void Transfers::EndIdle() {
  MutexLock lock(mutex_);
  while (EndLongestIdle(limits_.idle_max, "")) {
  }
}

Transfers::Place::~Place() {
  MutexLock lock(transfers_.mutex_);
  transfers_.entries_.erase(entry_);
}

void Transfers::Place::Moved() {
  const Nanos now = transfers_.clock_.Now();
  MutexLock lock(transfers_.mutex_);
  entry_->moved = now;
}

}  // namespace ag
