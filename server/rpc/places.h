// Bounds on the calls that hold a thread for as long as their client likes: transfers (uploads,
// downloads, exports, imports, backups), watches, streams of workers, and calls whose answer
// nobody reads. Their number is bounded, in all and for each connection, and one that stands still
// is ended: its client sees CANCELLED. Thread-safe.
#pragma once

#include <list>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/reason.h"
#include "base/status.h"

namespace grpc {
class ServerContextBase;
}

namespace ag {

struct PlaceLimits {
  int in_all = 128;
  int per_peer = 16;                         // For each connection; 0: all of them.
  Nanos idle_max{std::chrono::seconds(60)};  // Without a message a call is ended.
  // Without one for so long, a call makes room for another when all places are taken.
  Nanos makes_room{std::chrono::seconds(1)};
};

class Places {
 public:
  // `what` stands in messages: "transfers".
  Places(std::string what, Reason reason, const PlaceLimits& limits, Clock& clock)
      : what_(std::move(what)), reason_(reason), limits_(limits), clock_(clock) {}

  // One call; its end frees the place. Belongs to one thread, but for Moved.
  class Place;
  // kResourceExhausted: as many are open already, and none has stood still for `makes_room`. The
  // context outlives the place.
  StatusOr<std::unique_ptr<Place>> Enter(const grpc::ServerContextBase& context);

  void EndIdle();  // Ends what stands still; called often.

 private:
  struct Entry {
    const grpc::ServerContextBase* context = nullptr;
    std::string peer;
    Nanos moved{0};
    bool ended = false;
  };
  using Entries = std::list<Entry>;
  int Count(const std::string& peer) AG_REQUIRES(mutex_);  // Of calls that are not ended.
  bool EndLongestIdle(Nanos idle_min, const std::string& peer) AG_REQUIRES(mutex_);
  Status TooMany(Status status) const;

  const std::string what_;
  const Reason reason_;
  const PlaceLimits limits_;
  Clock& clock_;
  Mutex mutex_;
  Entries entries_ AG_GUARDED_BY(mutex_);
};

class Places::Place {
 public:
  Place(Places& places, Entries::iterator entry) : places_(places), entry_(entry) {}
  ~Place();
  Place(const Place&) = delete;

  void Moved();  // A message has come or gone.

 private:
  Places& places_;
  const Entries::iterator entry_;
};

}  // namespace ag
