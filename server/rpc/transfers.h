// The calls that send or take bytes for as long as a client likes: uploads, downloads, exports and
// imports of the cache. Each holds a thread, so their number is bounded, in all and for each
// connection, and one that stands still is ended: its client sees
// CANCELLED. Thread-safe.
#pragma once

#include <list>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"

namespace grpc {
class ServerContext;
}

namespace ag {

struct TransferLimits {
  int in_all = 128;
  int per_peer = 16;                         // For each connection.
  Nanos idle_max{std::chrono::seconds(60)};  // Without a message a transfer is ended.
};

class Transfers {
 public:
  Transfers(const TransferLimits& limits, Clock& clock) : limits_(limits), clock_(clock) {}

  // One call; its end frees the place. Belongs to one thread.
  class Place;
  // kResourceExhausted: as many are open already. A transfer that has stood still for a second
  // makes room for the one that asks. The context outlives the place.
  StatusOr<std::unique_ptr<Place>> Enter(grpc::ServerContext& context);

  void EndIdle();  // Ends what stands still; called often.

 private:
  struct Entry {
    grpc::ServerContext* context = nullptr;
    std::string peer;
    Nanos moved{0};
    bool ended = false;
  };
  using Entries = std::list<Entry>;
  int Count(const std::string& peer) AG_REQUIRES(mutex_);  // Of transfers that are not ended.
  bool EndLongestIdle(Nanos idle_min, const std::string& peer) AG_REQUIRES(mutex_);

  const TransferLimits limits_;
  Clock& clock_;
  Mutex mutex_;
  Entries entries_ AG_GUARDED_BY(mutex_);
};

class Transfers::Place {
 public:
  Place(Transfers& transfers, Entries::iterator entry) : transfers_(transfers), entry_(entry) {}
  ~Place();
  Place(const Place&) = delete;

  void Moved();  // A message has come or gone.

 private:
  Transfers& transfers_;
  const Entries::iterator entry_;
};

}  // namespace ag
