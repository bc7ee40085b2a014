#include "server/rpc/places.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>

namespace ag {

Status Places::TooMany(Status status) const {
  return RetryAfter(std::chrono::seconds(1), Because(reason_, std::move(status)));
}

// "": of all connections.
int Places::Count(const std::string& peer) {
  return static_cast<int>(std::ranges::count_if(entries_, [&](const Entry& entry) {
    return !entry.ended && (peer.empty() || entry.peer == peer);
  }));
}

bool Places::EndLongestIdle(Nanos idle_min, const std::string& peer) {
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

StatusOr<std::unique_ptr<Places::Place>> Places::Enter(const grpc::ServerContextBase& context) {
  const std::string peer = context.peer();
  MutexLock lock(mutex_);
  const bool is_share = limits_.per_peer > 0 && Count(peer) >= limits_.per_peer;
  if (is_share && !EndLongestIdle(limits_.makes_room, peer)) {
    return TooMany(Err(StatusCode::kResourceExhausted, "{} {} of this connection are open already",
                       limits_.per_peer, what_));
  }
  if (Count("") >= limits_.in_all && !EndLongestIdle(limits_.makes_room, "")) {
    return TooMany(
        Err(StatusCode::kResourceExhausted, "{} {} are open already", limits_.in_all, what_));
  }
  entries_.push_back({&context, peer, clock_.Now(), false});
  return std::make_unique<Place>(*this, std::prev(entries_.end()));
}

void Places::EndIdle() {
  MutexLock lock(mutex_);
  while (EndLongestIdle(limits_.idle_max, "")) {
  }
}

Places::Place::~Place() {
  MutexLock lock(places_.mutex_);
  places_.entries_.erase(entry_);
}

void Places::Place::Moved() {
  const Nanos now = places_.clock_.Now();
  MutexLock lock(places_.mutex_);
  entry_->moved = now;
}

}  // namespace ag
