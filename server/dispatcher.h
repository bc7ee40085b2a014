// The thread-safe face of the worker pool: measurers submit items and block, worker streams report
// and wait for what to send. Owns no thread; whoever waits also lets time pass (Tick).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "server/worker_pool.h"

namespace ag {

// A device that some live worker offers.
struct DeviceOffer {
  std::string device;
  std::string device_spec;  // Text of the DeviceSpec.
  Environment environment;
  bool simulated = false;
  std::string onnxruntime;  // Its version beside a worker of the device; empty: none.
};

// Where measurers send work. An interface, so that they are tested without workers.
class WorkRunner {
 public:
  virtual ~WorkRunner() = default;
  // Runs the item; `on_result` is called in this thread once per entry and must have stored what it
  // wants to keep when it returns (then the worker forgets it). Returns when every entry had its
  // result, or kCancelled once `cancelled()`. Not called with locks held.
  virtual Status Run(ItemRequest request, const std::function<void(const Delivery&)>& on_result,
                     const std::function<bool()>& cancelled) = 0;
};

class Dispatcher : public WorkRunner {
 public:
  Dispatcher(uint64_t epoch, const PoolOptions& options, Clock& clock);

  Status Run(ItemRequest request, const std::function<void(const Delivery&)>& on_result,
             const std::function<bool()>& cancelled) override;

  // Devices offered now, by name; of several workers of one device the first by id that serves.
  std::vector<DeviceOffer> Offers();
  // The offer for `device` ("": the only one there is). kUnavailable: nobody offers it, with the
  // reason; kInvalidArgument: "" and there are several.
  StatusOr<DeviceOffer> FindOffer(const std::string& device);

  // For worker streams.
  Status Connect(const std::string& worker_id, uint64_t session);
  void Report(uint64_t session, const WorkerReport& report);
  void Disconnect(const std::string& worker_id, uint64_t session);
  // Waits until there is something new to send (or `timeout`), and returns it.
  struct ToSend {
    Desired desired;
    uint64_t revision = 0;  // 0: the worker was removed.
    bool changed = false;   // False: the timeout passed.
  };
  ToSend WaitToSend(const std::string& worker_id, uint64_t last_revision, Nanos timeout);
  void WakeAll();  // Streams that must look whether they ended.

  std::vector<WorkerView> Workers();
  int waiting();
  void Tick();
  uint64_t epoch() const { return epoch_; }

 private:
  const uint64_t epoch_;
  Clock& clock_;
  Mutex mutex_;
  CondVar changed_;
  WorkerPool pool_ AG_GUARDED_BY(mutex_);
};

}  // namespace ag
