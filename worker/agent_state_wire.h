// The state that the agent's two threads share: the stream's thread and the thread that drives the
// executor. All waiting between them is here. Thread-safe.
#pragma once

#include <deque>
#include <optional>
#include <string>

#include "autograph/v1/worker.pb.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "worker/executor_role.h"

namespace ag {

class AgentState {
 public:
  AgentState(std::string worker_id, std::string device);

  // --- Calls of the stream's thread ---
  // Snapshot returns the whole state to send, with all results that are not acknowledged, and
  // clears the change that WaitForChange waits for. Desire takes the coordinator's desired state.
  autograph::v1::WorkerState Snapshot(bool with_spec) AG_EXCLUDES(mutex_);
  void Desire(autograph::v1::DesiredState desired) AG_EXCLUDES(mutex_);
  // Waits for something new to send; returns false when there is nothing after `timeout`.
  bool WaitForChange(Nanos timeout) AG_EXCLUDES(mutex_);
  void Nudge() AG_EXCLUDES(mutex_);  // Ends WaitForChange.

  // --- Calls of the executor's thread ---
  struct Task {
    autograph::v1::WorkItem item;
    uint64_t epoch = 0;
    std::string blob_dir;  // The coordinator's folder; empty: not on this host.
    std::string blob_proof;
  };
  // Waits for work that has not ended yet; returns nothing when there is none after `timeout`.
  std::optional<Task> WaitForTask(Nanos timeout) AG_EXCLUDES(mutex_);
  bool connected() const AG_EXCLUDES(mutex_);  // A desired state has arrived.
  std::string shared_blob_dir() const AG_EXCLUDES(mutex_);
  std::string shared_blob_proof() const AG_EXCLUDES(mutex_);
  bool StillWanted(const std::string& attempt) const AG_EXCLUDES(mutex_);
  void Begin(const std::string& attempt) AG_EXCLUDES(mutex_);
  void AddResult(const Task& task, autograph::v1::ItemResult result) AG_EXCLUDES(mutex_);
  void SetWaitsFor(const std::string& what) AG_EXCLUDES(mutex_);  // Empty: nothing.
  void End(const std::string& attempt) AG_EXCLUDES(mutex_);
  void SetHealth(autograph::v1::WorkerState::Health health, std::string reason) AG_EXCLUDES(mutex_);
  void SetFacts(const DeviceFacts& facts) AG_EXCLUDES(mutex_);
  void CountRestart() AG_EXCLUDES(mutex_);

  Status health() const AG_EXCLUDES(mutex_);  // As Agent's.
  // Takes no further work and says so: SERVING is not reported any more.
  void Drain() AG_EXCLUDES(mutex_);
  bool IsBusy() const AG_EXCLUDES(mutex_);  // An item is in hand.
  // Waits until the coordinator has acknowledged every result; false when it has not by `timeout`.
  bool WaitForAcknowledgements(Nanos timeout) AG_EXCLUDES(mutex_);
  void Stop() AG_EXCLUDES(mutex_);
  bool stopped() const AG_EXCLUDES(mutex_);

 private:
  void Changed() AG_REQUIRES(mutex_);

  mutable Mutex mutex_;
  CondVar condition_;
  autograph::v1::WorkerState state_ AG_GUARDED_BY(mutex_);  // Without results.
  std::deque<autograph::v1::ItemResult> results_ AG_GUARDED_BY(mutex_);
  autograph::v1::DesiredState desired_ AG_GUARDED_BY(mutex_);
  std::string ended_attempt_ AG_GUARDED_BY(mutex_);
  uint64_t sequence_ AG_GUARDED_BY(mutex_) = 0;
  bool changed_ AG_GUARDED_BY(mutex_) = true;
  bool withheld_ AG_GUARDED_BY(mutex_) = false;  // The last snapshot had no room for all results.
  bool connected_ AG_GUARDED_BY(mutex_) = false;
  bool draining_ AG_GUARDED_BY(mutex_) = false;
  bool stopped_ AG_GUARDED_BY(mutex_) = false;
};

}  // namespace ag
