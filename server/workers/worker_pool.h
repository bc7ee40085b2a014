// The assignment of work items to workers, as a state machine. Time enters as data, nothing blocks,
// nothing is sent: dispatcher.h adds a mutex and waiting, rpc_workers.cc the streams.
// docs/protocol.md describes the same exchange. One thread at a time.
//
// Invariants:
//   - An item is leased to at most one worker at a time, and a worker has at most one item. Each
//     lease has a name ("attempt") that is never used again.
//   - A result is taken at most once, and only from the attempt that holds the lease in this epoch.
//     Any other result is acknowledged and dropped. A result is acknowledged when it is stored
//     (Durable), and the worker repeats it until then. The results of a plan set are acknowledged
//     at once and delivered together at its end; a lost plan set is timed anew as a whole.
//   - Every submitted item ends, or waits for a worker. An attempt that ends without finishing an
//     entry is either a crash of an entry, which is quarantined after `attempts_max` of them, or a
//     lost worker, of which an item has at most `losses_max`. An item that no connected worker fits
//     fails after `no_worker_max`.
//   - A result whose figures cannot be (CheckResult) is not taken. Its worker is drained: whatever
//     it reports, it gets no item until it is admitted, and its attempt is lost.
//   - An attempt that has sent no result for `quiet_max`, beyond the time that its work was given,
//     goes to another worker, once one is free that the item does not avoid. The quiet worker
//     rests: for ten times `quiet_max` it gets nothing while another worker could do it.
//
// Assign, which almost every event calls, takes time linear in items times workers.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "server/workers/work.h"

namespace ag {

struct PoolOptions {
  Nanos worker_expiry{std::chrono::seconds(30)};  // A worker silent this long is gone.
  Nanos reconnect_max{std::chrono::seconds(5)};   // Time for a closed stream to return.
  Nanos no_worker_max{std::chrono::minutes(15)};  // Wait of an item without a fitting worker.
  // The same where workers serve the device in another environment: the job is better planned anew.
  Nanos other_environment_max{std::chrono::seconds(10)};
  Nanos quiet_max{std::chrono::minutes(1)};  // Of an attempt that another worker could make.
  Nanos settle{std::chrono::seconds(10)};    // See WorkerView::is_settled.
  int attempts_max = 2;                      // How many executors one entry may crash.
  int losses_max = 3;                        // An item that lost this many workers fails.
};

struct ItemRequest {
  std::string device;
  Environment environment;
  std::shared_ptr<const v1::WorkItem> work;
  std::vector<std::string> outputs =
      {};  // The names of what is compared, of an item that compares.
  // May be null. Called with what the item waits for, in the words of Progress.waits_for, when that
  // changes; "" means nothing.
  std::function<void(const std::string&)> on_wait = nullptr;
  // May be null. Called at the item's end with the time that workers have had it.
  std::function<void(Nanos)> on_device_time = nullptr;
};

// A result on its way to the caller that submitted the item.
struct Delivery {
  int entry = 0;  // Index in the submitted item.
  EntryResult result;
  bool quarantined = false;  // The entry crashed executors; its failure should be stored.
  std::string worker_id;     // The worker to acknowledge once the result is stored; empty: none.
  uint64_t sequence = 0;
  std::string attempt;
};

struct WorkerView {
  WorkerReport state;  // The last report, without results.
  Nanos seen{0};
  bool connected = false;
  std::string attempt;      // The attempt that is leased to it; empty: none.
  bool is_settled = false;  // It has offered its device in its environment for `settle`.
};

class WorkerPool {
 public:
  WorkerPool(uint64_t epoch, PoolOptions options);
  ~WorkerPool();

  // Registers an opened stream. kResourceExhausted: another live stream has this id.
  Status Connect(Nanos now, const std::string& worker_id, uint64_t session);
  // Takes the worker's report. REQUIRES: `session` is connected under report.worker_id; otherwise
  // ignored.
  void Report(Nanos now, uint64_t session, const WorkerReport& report);
  void Disconnect(Nanos now, const std::string& worker_id, uint64_t session);
  void Tick(Nanos now);  // Ends what has expired, leases items that wait.

  // Returns what to send to the worker, and forgets the acknowledgements in it. `revision` grows
  // whenever there is something new to send.
  Desired TakeDesired(const std::string& worker_id);
  uint64_t revision(const std::string& worker_id) const;  // 0: no such worker.

  // Returns how many workers could begin work for this device in this environment now.
  int Idle(const std::string& device, const Environment& environment) const;
  uint64_t Submit(Nanos now, ItemRequest request);
  // Returns the results since the last call, in order of arrival. REQUIRES: submitted, not
  // withdrawn.
  std::vector<Delivery> Take(uint64_t item);
  bool Ended(uint64_t item) const;            // Every entry has its result, and all were taken.
  std::string WaitsFor(uint64_t item) const;  // "a free worker of device cpu"; empty: it runs.
  Nanos DeviceTime(Nanos now, uint64_t item) const;  // That workers have had it, all together.
  void Durable(const Delivery& delivery);  // The result is stored: the worker may forget it.
  void Withdraw(uint64_t item);            // Forgets the item; its worker is stopped.

  std::vector<WorkerView> Workers(Nanos now) const;  // By id.
  // Gives work again to a worker that was drained, once it has reported. kNotFound: none of this id
  // is drained.
  Status Admit(const std::string& worker_id);
  int waiting() const;  // Items that no worker has.
  uint64_t epoch() const { return epoch_; }
  // Grows whenever a worker leaves, or its health, device or environment changes.
  uint64_t offers_revision() const { return offers_revision_; }

 private:
  struct Worker;
  struct Item;
  void TakeResult(Worker& worker, const WorkerResult& result);
  void Drain(Item& item, Worker& worker, const Status& why);
  void TakeEntry(Item& item, Worker& worker, const WorkerResult& result);
  void TakeCrash(Item& item, Worker& worker, const WorkerResult& result);
  void EndAttempt(Item& item, const Status& status);
  void LoseAttempt(Item& item, const std::string& why);
  void PassOnQuiet(Nanos now);
  bool IsQuiet(Nanos now, const Item& item) const;
  void Release(Item& item);
  void Finish(Item& item, int entry, EntryResult result, bool quarantined = false);
  void FailRest(Item& item, const Status& status);
  void Acknowledge(const std::string& worker_id, uint64_t sequence);
  void Assign(Nanos now);
  Worker* Choose(const Item& item);
  static bool Serves(const Worker& worker);
  bool Fits(const Worker& worker, const std::string& device, const Environment& environment) const;
  bool Fits(const Worker& worker, const Item& item) const;
  bool AnyFits(const Item& item) const;
  bool AnyServesInAnother(const Item& item) const;
  void LeaseTo(Nanos now, Item& item, Worker& worker);
  void Reconcile(Nanos now, Worker& worker, bool was_in_hand);
  void Erase(const std::string& worker_id);

  const uint64_t epoch_;
  const PoolOptions options_;
  Nanos now_{0};  // Of the last event.
  uint64_t next_item_ = 1;
  uint64_t next_attempt_ = 1;
  uint64_t next_revision_ = 1;
  uint64_t offers_revision_ = 1;
  std::map<std::string, std::string> drained_;  // Why, by worker id.
  std::map<std::string, Nanos> resting_;        // Until when, by worker id.
  std::map<std::string, std::unique_ptr<Worker>> workers_;
  std::map<uint64_t, std::unique_ptr<Item>> items_;  // In order of submission.
};

}  // namespace ag
