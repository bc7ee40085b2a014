#include "worker/agent_state_wire.h"

#include <algorithm>
#include <utility>

#include "base/build_facts.h"
#include "base/log.h"

namespace ag {

namespace v1 = autograph::v1;

namespace {

constexpr size_t kResultBytesMax = size_t{2} << 20;

}  // namespace

AgentState::AgentState(std::string worker_id, std::string device) {
  state_.set_worker_id(std::move(worker_id));
  state_.set_device(std::move(device));
  state_.set_health(v1::WorkerState::STARTING);
  state_.set_reason("starting");
  state_.set_version(std::string(Version()));
}

void AgentState::Changed() {
  changed_ = true;
  condition_.NotifyAll();
}

v1::WorkerState AgentState::Snapshot(bool with_spec) {
  MutexLock lock(mutex_);
  v1::WorkerState snapshot = state_;
  if (!with_spec) snapshot.clear_device_spec();
  // The coordinator takes 4 MiB in one message. What does not fit is sent when the rest is
  // acknowledged.
  size_t bytes = 0;
  withheld_ = false;
  for (const v1::ItemResult& result : results_) {
    bytes += result.ByteSizeLong();
    withheld_ = snapshot.results_size() > 0 && bytes > kResultBytesMax;
    if (withheld_) break;
    *snapshot.add_results() = result;
  }
  changed_ = false;
  return snapshot;
}

void AgentState::Desire(v1::DesiredState desired) {
  MutexLock lock(mutex_);
  if (desired.epoch() != state_.epoch()) {
    // The coordinator was started anew and would refuse what an earlier one asked for.
    results_.clear();
    ended_attempt_.clear();
    state_.set_epoch(desired.epoch());
  }
  for (const uint64_t sequence : desired.acknowledged()) {
    const auto acknowledged = [sequence](const v1::ItemResult& r) {
      return r.sequence() == sequence;
    };
    results_.erase(std::remove_if(results_.begin(), results_.end(), acknowledged), results_.end());
  }
  if (!desired.acknowledged().empty() && withheld_) changed_ = true;  // There is room.
  if (desired.drain() && !desired_.drain()) {
    LogWarn("the coordinator gives this worker no further work; `autograph workers list` says why");
  }
  desired_ = std::move(desired);
  connected_ = true;
  condition_.NotifyAll();
}

bool AgentState::WaitForChange(Nanos timeout) {
  MutexLock lock(mutex_);
  if (!changed_ && !stopped_) condition_.WaitFor(mutex_, timeout);
  return changed_;
}

void AgentState::Nudge() {
  MutexLock lock(mutex_);
  Changed();
}

std::optional<AgentState::Task> AgentState::WaitForTask(Nanos timeout) {
  MutexLock lock(mutex_);
  const auto ready = [this]() AG_REQUIRES(mutex_) {
    return desired_.has_work() && desired_.work().attempt() != ended_attempt_ &&
           !desired_.drain() && !draining_;
  };
  if (!ready() && !stopped_) condition_.WaitFor(mutex_, timeout);
  if (!ready() || stopped_) return std::nullopt;
  return Task{desired_.work(), desired_.epoch(), desired_.shared_blob_dir(),
              desired_.shared_blob_proof()};
}

bool AgentState::connected() const {
  MutexLock lock(mutex_);
  return connected_;
}

std::string AgentState::shared_blob_dir() const {
  MutexLock lock(mutex_);
  return desired_.shared_blob_dir();
}

std::string AgentState::shared_blob_proof() const {
  MutexLock lock(mutex_);
  return desired_.shared_blob_proof();
}

bool AgentState::StillWanted(const std::string& attempt) const {
  MutexLock lock(mutex_);
  return !stopped_ && desired_.work().attempt() == attempt;
}

void AgentState::Begin(const std::string& attempt) {
  MutexLock lock(mutex_);
  state_.set_attempt(attempt);
  Changed();
}

void AgentState::AddResult(const Task& task, v1::ItemResult result) {
  MutexLock lock(mutex_);
  if (task.epoch != state_.epoch()) return;
  result.set_sequence(++sequence_);
  result.set_epoch(task.epoch);
  result.set_attempt(task.item.attempt());
  results_.push_back(std::move(result));
  Changed();
}

void AgentState::SetWaitsFor(const std::string& what) {
  MutexLock lock(mutex_);
  if (state_.waits_for() == what) return;
  state_.set_waits_for(what);
  Changed();
}

void AgentState::End(const std::string& attempt) {
  MutexLock lock(mutex_);
  ended_attempt_ = attempt;
  state_.clear_attempt();
  state_.clear_waits_for();
  Changed();
}

void AgentState::Drain() {
  MutexLock lock(mutex_);
  draining_ = true;
  state_.set_health(v1::WorkerState::DRAINING);
  state_.set_reason("draining");
  Changed();
}

bool AgentState::IsBusy() const {
  MutexLock lock(mutex_);
  return !state_.attempt().empty();
}

bool AgentState::WaitForAcknowledgements(Nanos timeout) {
  const Nanos end = RealClock().Now() + timeout;
  MutexLock lock(mutex_);
  while (!results_.empty()) {
    const Nanos left = end - RealClock().Now();
    if (left <= Nanos{0}) return false;
    condition_.WaitFor(mutex_, left);  // Desire wakes it.
  }
  return true;
}

void AgentState::SetHealth(v1::WorkerState::Health health, std::string reason) {
  MutexLock lock(mutex_);
  if (draining_ && health == v1::WorkerState::SERVING) return;
  state_.set_health(health);
  state_.set_reason(std::move(reason));
  Changed();
}

void AgentState::SetFacts(const DeviceFacts& facts) {
  MutexLock lock(mutex_);
  state_.set_device_spec(facts.spec);
  state_.set_environment(facts.environment);
  state_.set_simulated(facts.simulated);
  state_.set_onnxruntime(facts.onnxruntime);
  Changed();
}

void AgentState::CountRestart() {
  MutexLock lock(mutex_);
  state_.set_executor_restarts(state_.executor_restarts() + 1);
}

Status AgentState::health() const {
  MutexLock lock(mutex_);
  if (state_.health() == v1::WorkerState::SERVING) return OkStatus();
  const bool is_starting = state_.health() == v1::WorkerState::STARTING;
  return Err(is_starting ? StatusCode::kFailedPrecondition : StatusCode::kUnavailable, "{}",
             state_.reason());
}

void AgentState::Stop() {
  MutexLock lock(mutex_);
  stopped_ = true;
  state_.set_health(v1::WorkerState::DRAINING);
  state_.set_reason("stopping");
  Changed();
}

bool AgentState::stopped() const {
  MutexLock lock(mutex_);
  return stopped_;
}

}  // namespace ag
