// The worker pool behind a mutex: measurers submit items and block, the threads of the worker
// streams report and wait for what to send. Owns no thread: every waiting call also lets time pass
// in the pool (Tick). Thread-safe.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "server/workers/worker_pool.h"

namespace ag {

// A device in one environment, which some live worker offers. Times of different environments are
// never compared, so a job is planned for one of them.
struct DeviceOffer {
  std::string device;
  std::string device_spec;  // Text of the DeviceSpec.
  Environment environment;
  bool simulated = false;
  std::string onnxruntime;  // The version of ONNX Runtime beside one of its workers; empty: none.
  bool is_settled = false;  // One of its workers is.
};

// Returns the offers for which jobs should be planned: those that are settled, or all when none is.
// A worker that comes and goes in an environment of its own would take jobs along.
std::vector<DeviceOffer> SettledOffers(std::vector<DeviceOffer> offers);

// The interface through which measurers send work; tests implement it without workers.
class WorkRunner {
 public:
  virtual ~WorkRunner() = default;
  // Runs the item and returns OK when every entry has had its result, or kCancelled once
  // `cancelled()` is true. Calls `on_result` in this thread, once per entry; when it returns, the
  // worker forgets the result, so it must have stored what it wants to keep. Takes `cancelled`
  // null. REQUIRES: the caller holds no lock.
  virtual Status Run(ItemRequest request, const std::function<void(const Delivery&)>& on_result,
                     const std::function<bool()>& cancelled) = 0;
};

class Dispatcher : public WorkRunner {
 public:
  Dispatcher(uint64_t epoch, const PoolOptions& options, Clock& clock);

  // Idle workers share an item where its parts do not depend on one another (PartsOf).
  Status Run(ItemRequest request, const std::function<void(const Delivery&)>& on_result,
             const std::function<bool()>& cancelled) override;

  // Returns what is offered now, sorted by device and environment, each pair once. When several
  // workers offer a pair, the worker with the first id speaks for it.
  std::vector<DeviceOffer> Offers();
  // Returns the offers of `device`, one or more; "" means the only device there is. kUnavailable:
  // no worker offers it, with the reason; kInvalidArgument: "" and there are several devices.
  StatusOr<std::vector<DeviceOffer>> FindOffers(const std::string& device);

  // Calls for worker streams, as WorkerPool has them.
  Status Connect(const std::string& worker_id, uint64_t session);
  void Report(uint64_t session, const WorkerReport& report);
  void Disconnect(const std::string& worker_id, uint64_t session);
  // Waits until there is something newer than `last_revision` to send, or for `timeout`, and
  // returns it. May return early with nothing changed.
  struct ToSend {
    Desired desired;
    uint64_t revision = 0;  // 0: the worker was removed.
    bool changed = false;   // False: there is nothing new.
  };
  ToSend WaitToSend(const std::string& worker_id, uint64_t last_revision, Nanos timeout);
  void WakeAll();  // Streams then look whether they should end.

  std::vector<WorkerView> Workers();
  Status Admit(const std::string& worker_id);  // As WorkerPool has it.
  int waiting();
  // Grows whenever Offers may have changed.
  uint64_t offers_revision();
  void Tick();
  uint64_t epoch() const { return epoch_; }

 private:
  // A part of an item that was submitted.
  struct Part {
    uint64_t item = 0;
    // The whole item's entry of each of the part's; -1: an earlier part tells its result.
    std::vector<int> entries;
  };
  std::vector<Part> Submit(const ItemRequest& request);
  std::string WaitsFor(const std::vector<Part>& parts) AG_REQUIRES(mutex_);

  const uint64_t epoch_;
  Clock& clock_;
  Mutex mutex_;
  CondVar changed_;
  WorkerPool pool_ AG_GUARDED_BY(mutex_);
};

}  // namespace ag
