// The agent's handle on one executor process: spawn, open the device, run an item under a watchdog,
// kill.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/process.h"
#include "worker/executor_role.h"

namespace ag {

class ExecutorProcess {
 public:
  struct Options {
    OpenRequest open;
    std::string program;  // Empty: our own binary.
    Nanos open_time_max{60'000'000'000};
    Nanos poll{50'000'000};  // How often stop and watchdog are looked at.
    // An item that is no longer wanted has often just ended: its last frame is on the way. Killing
    // the executor, opening and qualifying another costs more than waiting this long for it.
    Nanos stop_grace{500'000'000};
  };

  // Spawns the child and opens the device in it. The device's own error, or kUnavailable when the
  // child died.
  static StatusOr<std::unique_ptr<ExecutorProcess>> Start(const Options& options, Clock& clock);
  ~ExecutorProcess();

  const DeviceFacts& facts() const { return facts_; }
  pid_t pid() const { return child_->pid(); }
  std::string WaitsFor() const;  // "the measuring lock, held by process 123"; empty: it works.

  // How an item ended: `alive` is false when the executor is gone (crashed, hung and killed,
  // stopped); `index` is the entry it was at. This object is of no more use then.
  struct End {
    bool alive = true;
    int index = -1;
    Status status;  // kUnavailable "executor died ..." or "device lost ...", kDeadlineExceeded "no
                    // progress for ...", kCancelled.
  };
  // Sends the item and passes each result frame to `on_result` until `is_last` says so of one.
  // Without progress for `no_progress_max`, or when `stop()` stays true for Options::stop_grace,
  // the child is killed.
  End Run(const std::string& item_bytes, Nanos no_progress_max,
          const std::function<bool(const std::string&)>& on_result,
          const std::function<bool()>& stop);

 private:
  ExecutorProcess(ChildProcess child, Fd page_fd, ProgressPage* page, const Options& options,
                  Clock& clock);
  End Died(Status status);
  End Lost(const Status& status);  // The executor said that its device is gone.

  std::unique_ptr<ChildProcess> child_;
  Fd page_fd_;
  ProgressPage* page_;
  Options options_;
  Clock& clock_;
  DeviceFacts facts_;
};

}  // namespace ag
