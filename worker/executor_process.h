// One executor process as the agent sees it: spawn it, open the device, run an item under a
// watchdog, kill it. One thread at a time.
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
    std::string program;  // Empty: this program.
    Nanos open_time_max{60'000'000'000};
    Nanos poll{50'000'000};  // How often `stop` and the watchdog are checked.
    // Time that an unwanted item still has. Its last frame is often on the way, and waiting for it
    // costs less than killing the executor, opening and qualifying another one.
    Nanos stop_grace{500'000'000};
  };

  // Spawns the child and opens the device in it. Returns the device's own error, or kUnavailable
  // when the child died.
  static StatusOr<std::unique_ptr<ExecutorProcess>> Start(const Options& options, Clock& clock);
  ~ExecutorProcess();

  const DeviceFacts& facts() const { return facts_; }
  pid_t pid() const { return child_->pid(); }
  std::string WaitsFor() const;  // "the measuring lock, held by process 123"; empty: nothing.

  // The end of an item. `alive` is false when the executor is gone (crashed, hung and killed,
  // stopped); then this object cannot be used any more. `index` is the entry at which it ended.
  struct End {
    bool alive = true;
    int index = -1;
    Status status;  // kUnavailable "executor died ..." or "device lost ...", kDeadlineExceeded "no
                    // progress for ...", kCancelled.
  };
  // Sends the item and passes each result frame to `on_result` until that returns true. Kills the
  // child when there is no progress for `no_progress_max`, or when `stop()` stays true for
  // Options::stop_grace.
  End Run(const std::string& item_bytes, Nanos no_progress_max,
          const std::function<bool(const std::string&)>& on_result,
          const std::function<bool()>& stop);

  // Returns OK while the process runs. kUnavailable "executor died ...": it ended without work, for
  // example by the kernel's out-of-memory killer; then this object cannot be used any more.
  Status Look();

 private:
  ExecutorProcess(ChildProcess child, Fd page_fd, ProgressPage* page, const Options& options,
                  Clock& clock);
  End Died(Status status);
  End Lost(const Status& status);  // The executor reported that its device is gone.

  std::unique_ptr<ChildProcess> child_;
  Fd page_fd_;
  ProgressPage* page_;
  Options options_;
  Clock& clock_;
  DeviceFacts facts_;
};

}  // namespace ag
