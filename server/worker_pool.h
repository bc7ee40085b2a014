// Who works on what: a state machine over workers and items. Time enters as data, nothing blocks,
// nothing is sent; dispatcher.h puts a mutex and waiting around it, rpc_workers.cc the streams.
// docs/protocol.md tells the same in words. Not thread-safe.
//
// Promises: an item is leased to at most one worker at a time; a result is taken at most once, and
// only from the attempt that holds the lease in this epoch; an entry that killed executors
// `attempts_max` times is quarantined and the rest goes on; every submitted item ends, or waits for
// a worker.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "server/work.h"

namespace ag {

struct PoolOptions {
  Nanos worker_expiry{std::chrono::seconds(30)};  // Silence after which a worker is gone.
  Nanos reconnect_max{std::chrono::seconds(5)};   // A closed stream has this long to come back.
  Nanos no_worker_max{std::chrono::minutes(15)};  // An item without any fitting worker fails.
  int attempts_max = 2;                           // Per entry that kills its executor.
  int losses_max = 3;                             // Workers that an item may lose before it fails.
};

struct ItemRequest {
  std::string device;
  Environment environment;
  std::shared_ptr<const WorkItem> work;
  // May be null. Hears what the item waits for, in the words of Progress.waits_for, when that
  // changes; "" when it is nothing.
  std::function<void(const std::string&)> on_wait = nullptr;
};

// A result on its way to the one who submitted the item.
struct Delivery {
  int entry = 0;  // Index in the submitted item.
  EntryResult result;
  bool quarantined = false;  // The entry crashed executors; the failure is worth remembering.
  std::string worker_id;     // Whom to acknowledge once it is durable; empty: nobody.
  uint64_t sequence = 0;
  std::string attempt;
};

struct WorkerView {
  WorkerReport state;  // The last report, without results.
  Nanos seen{0};
  bool connected = false;
  std::string attempt;  // Leased to it.
};

class WorkerPool {
 public:
  WorkerPool(uint64_t epoch, PoolOptions options);
  ~WorkerPool();

  // A stream opened. kResourceExhausted: another live stream has this id.
  Status Connect(Nanos now, const std::string& worker_id, uint64_t session);
  // REQUIRES: `session` is connected under report.worker_id; otherwise ignored.
  void Report(Nanos now, uint64_t session, const WorkerReport& report);
  void Disconnect(Nanos now, const std::string& worker_id, uint64_t session);
  void Tick(Nanos now);  // Ends what has expired, leases what waits.

  // What to send; takes the acknowledgements. `revision` grows whenever there is something new to
  // send.
  Desired TakeDesired(const std::string& worker_id);
  uint64_t revision(const std::string& worker_id) const;  // 0: no such worker.

  uint64_t Submit(Nanos now, ItemRequest request);
  // Results since the last call, in order of arrival. REQUIRES: submitted and not withdrawn.
  std::vector<Delivery> Take(uint64_t item);
  bool Ended(uint64_t item) const;            // Every entry has been taken.
  std::string WaitsFor(uint64_t item) const;  // "a free worker of device cpu"; empty: it is run.
  void Durable(const Delivery& delivery);     // Stored: the worker may forget it.
  void Withdraw(uint64_t item);               // Done or not wanted; its worker is stopped.

  std::vector<WorkerView> Workers() const;  // By id.
  int waiting() const;                      // Items without a worker.
  uint64_t epoch() const { return epoch_; }

 private:
  struct Worker;
  struct Item;
  void TakeResult(Worker& worker, const WorkerResult& result);
  void TakeEntry(Item& item, Worker& worker, const WorkerResult& result);
  void TakeCrash(Item& item, Worker& worker, const WorkerResult& result);
  void EndAttempt(Item& item, const Status& status);
  void LoseAttempt(Item& item, const std::string& why);
  void Release(Item& item);
  void Finish(Item& item, int entry, EntryResult result, bool quarantined = false);
  void FailRest(Item& item, const Status& status);
  void Acknowledge(const std::string& worker_id, uint64_t sequence);
  void Assign(Nanos now);
  Worker* Choose(const Item& item);
  bool AnyFits(const Item& item) const;
  void LeaseTo(Nanos now, Item& item, Worker& worker);
  void Reconcile(Nanos now, Worker& worker, bool was_in_hand);
  void Erase(const std::string& worker_id);

  const uint64_t epoch_;
  const PoolOptions options_;
  uint64_t next_item_ = 1;
  uint64_t next_attempt_ = 1;
  uint64_t next_revision_ = 1;
  std::map<std::string, std::unique_ptr<Worker>> workers_;
  std::map<uint64_t, std::unique_ptr<Item>> items_;  // In order of submission.
};

}  // namespace ag
