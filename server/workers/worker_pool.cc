#include "server/workers/worker_pool.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "base/log.h"
#include "server/workers/check_result.h"

namespace ag {

constexpr int kRest = 10;  // Times PoolOptions::quiet_max.

struct WorkerPool::Worker {
  WorkerReport state;
  uint64_t session = 0;  // 0: no stream.
  Nanos seen{0};
  Nanos offers_since{0};  // When its device or its environment last changed.
  Nanos disconnected{0};
  uint64_t item = 0;     // The item that is leased to it; 0: none.
  bool in_hand = false;  // The worker has reported the leased attempt.
  Nanos leased{0};
  std::set<uint64_t> acknowledged;
  uint64_t revision = 1;
};

struct WorkerPool::Item {
  struct Entry {
    bool done = false;
    int crashes = 0;
  };
  // The results that an attempt of this item has sent, so that a repeated one is not refused while
  // it is being stored.
  enum class Seen { kPending, kDurable };
  struct Attempt {
    std::map<uint64_t, Seen> seen;
  };

  uint64_t id = 0;
  ItemRequest request;
  std::vector<Entry> entries;
  std::string worker;  // The worker that holds the lease; empty: waiting.
  std::string attempt;
  std::shared_ptr<const v1::WorkItem> leased_work;
  std::vector<int> leased_entries;
  Nanos heard{0};                      // When the attempt began, or sent its last result.
  std::map<int, EntryResult> timings;  // PlanSet: kept until the attempt ends.
  std::map<std::string, Attempt> attempts;
  std::set<std::string> avoid;  // Workers whose executor this item crashed or which lost it.
  int losses = 0;
  std::optional<Nanos> alone_since;  // When the last fitting worker went away.
  std::deque<Delivery> inbox;
  size_t taken = 0;
  Nanos device_time{0};  // Of the leases that have ended.

  bool is_plan_set() const { return request.work->has_plans(); }
  bool is_check() const { return request.work->has_check(); }
  bool AllDone() const {
    return std::all_of(entries.begin(), entries.end(), [](const Entry& e) { return e.done; });
  }
};

WorkerPool::WorkerPool(uint64_t epoch, PoolOptions options) : epoch_(epoch), options_(options) {}
WorkerPool::~WorkerPool() = default;

// --- Workers ---

Status WorkerPool::Connect(Nanos now, const std::string& worker_id, uint64_t session) {
  if (worker_id.empty()) return Err(StatusCode::kInvalidArgument, "worker_id is empty");
  std::unique_ptr<Worker>& worker = workers_[worker_id];
  if (worker == nullptr) worker = std::make_unique<Worker>();
  if (worker->session != 0 && now - worker->seen < options_.worker_expiry) {
    return Err(StatusCode::kResourceExhausted, "another live worker is called {}", worker_id);
  }
  worker->session = session;
  worker->seen = now;
  worker->state.worker_id = worker_id;
  worker->revision = ++next_revision_;
  return OkStatus();
}

void WorkerPool::Report(Nanos now, uint64_t session, const WorkerReport& report) {
  now_ = now;
  const auto found = workers_.find(report.worker_id);
  if (found == workers_.end() || found->second->session != session) return;
  Worker& worker = *found->second;
  worker.seen = now;
  for (const WorkerResult& result : report.results) TakeResult(worker, result);
  const WorkerReport before = std::exchange(worker.state, report);
  worker.state.results.clear();
  if (worker.state.device_spec.empty()) worker.state.device_spec = before.device_spec;
  if (const auto drained = drained_.find(report.worker_id); drained != drained_.end()) {
    worker.state.health = WorkerHealth::kDraining;
    worker.state.reason = drained->second;
  }
  const auto offer_of = [](const WorkerReport& said) {
    return std::tie(said.health, said.device, said.environment, said.onnxruntime, said.device_spec);
  };
  if (offer_of(worker.state) != offer_of(before)) ++offers_revision_;
  if (std::tie(report.device, report.environment) != std::tie(before.device, before.environment)) {
    worker.offers_since = now;
  }
  if (worker.state.health != before.health) {
    LogInfo("worker {} ({}) is {} {}", report.worker_id, report.device,
            WorkerHealthName(worker.state.health), worker.state.reason);
  }
  Reconcile(now, worker, worker.in_hand);
  Assign(now);
}

// Compares the attempt that the worker reports with the lease that it should hold. An attempt that
// was reported before and no longer is, or that was not begun within `worker_expiry`, is lost.
void WorkerPool::Reconcile(Nanos now, Worker& worker, bool was_in_hand) {
  if (worker.item == 0) {
    // The worker works on something that it should not: send its desired state again.
    if (!worker.state.attempt.empty()) worker.revision = ++next_revision_;
    return;
  }
  Item& item = *items_.at(worker.item);
  if (worker.state.attempt == item.attempt) {
    worker.in_hand = true;
  } else if (was_in_hand) {
    LoseAttempt(item, fmt::format("worker {} let go of {}", worker.state.worker_id, item.attempt));
  } else if (now - worker.leased > options_.worker_expiry) {
    LoseAttempt(item,
                fmt::format("worker {} did not begin {}", worker.state.worker_id, item.attempt));
  }
}

void WorkerPool::Disconnect(Nanos now, const std::string& worker_id, uint64_t session) {
  now_ = now;
  const auto found = workers_.find(worker_id);
  if (found == workers_.end() || found->second->session != session) return;
  Worker& worker = *found->second;
  worker.session = 0;
  worker.disconnected = now;
  if (worker.item == 0) Erase(worker_id);
  Assign(now);
}

void WorkerPool::Erase(const std::string& worker_id) {
  const auto found = workers_.find(worker_id);
  if (found->second->item != 0) {
    LoseAttempt(*items_.at(found->second->item), fmt::format("worker {} is gone", worker_id));
  }
  LogInfo("worker {} left", worker_id);
  workers_.erase(found);
  ++offers_revision_;
}

void WorkerPool::Tick(Nanos now) {
  now_ = now;
  std::vector<std::string> gone;
  for (const auto& [id, worker] : workers_) {
    const bool silent = now - worker->seen >= options_.worker_expiry;
    const bool cut = worker->session == 0 && now - worker->disconnected >= options_.reconnect_max;
    if (silent || cut) gone.push_back(id);
  }
  for (const std::string& id : gone) Erase(id);
  std::erase_if(resting_, [&](const auto& resting) { return resting.second <= now; });
  PassOnQuiet(now);
  Assign(now);
}

bool WorkerPool::IsQuiet(Nanos now, const Item& item) const {
  return now - item.heard >= options_.quiet_max + QuietTime(*item.request.work);
}

// No fault of the item: it loses no worker by it.
void WorkerPool::PassOnQuiet(Nanos now) {
  for (const auto& [id, item] : items_) {
    if (item->worker.empty() || !IsQuiet(now, *item)) continue;
    Worker* const other = Choose(*item);
    if (other == nullptr || item->avoid.contains(other->state.worker_id)) continue;
    LogWarn("item {}: attempt {} goes to another worker: {} has sent nothing for {:.1f} s", id,
            item->attempt, item->worker, std::chrono::duration<double>(now - item->heard).count());
    item->avoid.insert(item->worker);
    resting_[item->worker] = now + kRest * options_.quiet_max;
    Release(*item);
    LeaseTo(now, *item, *other);
  }
}

Desired WorkerPool::TakeDesired(const std::string& worker_id) {
  Desired desired;
  desired.epoch = epoch_;
  desired.drain = drained_.contains(worker_id);
  const auto found = workers_.find(worker_id);
  if (found == workers_.end()) return desired;
  Worker& worker = *found->second;
  desired.acknowledged.assign(worker.acknowledged.begin(), worker.acknowledged.end());
  worker.acknowledged.clear();
  if (worker.item != 0) {
    const Item& item = *items_.at(worker.item);
    desired.lease = Lease{item.attempt, worker.in_hand ? nullptr : item.leased_work};
  }
  return desired;
}

uint64_t WorkerPool::revision(const std::string& worker_id) const {
  const auto found = workers_.find(worker_id);
  return found == workers_.end() ? 0 : found->second->revision;
}

void WorkerPool::Acknowledge(const std::string& worker_id, uint64_t sequence) {
  const auto found = workers_.find(worker_id);
  if (found == workers_.end()) return;
  found->second->acknowledged.insert(sequence);
  found->second->revision = ++next_revision_;
}

std::vector<WorkerView> WorkerPool::Workers(Nanos now) const {
  std::vector<WorkerView> views;
  for (const auto& [id, worker] : workers_) {
    views.push_back({worker->state, worker->seen, worker->session != 0,
                     worker->item != 0 ? items_.at(worker->item)->attempt : "",
                     now - worker->offers_since >= options_.settle});
  }
  return views;
}

// --- Results ---

void WorkerPool::TakeResult(Worker& worker, const WorkerResult& result) {
  const std::string& id = worker.state.worker_id;
  Item* item = nullptr;
  for (const auto& [item_id, candidate] : items_) {
    if (candidate->attempts.contains(result.attempt)) item = candidate.get();
  }
  if (result.epoch != epoch_ || item == nullptr) return Acknowledge(id, result.sequence);
  auto& seen = item->attempts[result.attempt].seen;
  if (const auto known = seen.find(result.sequence); known != seen.end()) {
    if (known->second == Item::Seen::kDurable) Acknowledge(id, result.sequence);
    return;
  }
  if (item->attempt != result.attempt || item->worker != id) {
    LogInfo("late result {} of {} from worker {} refused", result.entry.index, result.attempt, id);
    return Acknowledge(id, result.sequence);
  }
  if (result.entry.executor_died) return TakeCrash(*item, worker, result);
  const bool is_check_with_end =
      item->is_check() && result.entry.status.ok() && !result.entry.errors.empty();
  if (result.entry.index >= 0 || is_check_with_end) {
    if (const Status checked = CheckResult(item->request, result.entry); !checked.ok()) {
      Acknowledge(id, result.sequence);
      return Drain(*item, worker, checked);
    }
  }
  if (result.entry.index >= 0) return TakeEntry(*item, worker, result);
  Acknowledge(id, result.sequence);
  if (is_check_with_end) Finish(*item, 0, result.entry);
  EndAttempt(*item, result.entry.status);
}

// What the worker sent before is kept: it passed the same check.
void WorkerPool::Drain(Item& item, Worker& worker, const Status& why) {
  const std::string& id = worker.state.worker_id;
  std::string& reason = drained_[id];
  reason = fmt::format("it sent a figure that cannot be: {}", Message(why));
  LogError("worker {} is drained: {}", id, reason);
  LoseAttempt(item, fmt::format("worker {} is drained", id));
}

Status WorkerPool::Admit(const std::string& worker_id) {
  if (drained_.erase(worker_id) == 0) {
    return Err(StatusCode::kNotFound, "no worker {} is drained", worker_id);
  }
  LogInfo("worker {} is admitted again", worker_id);
  const auto found = workers_.find(worker_id);
  if (found != workers_.end()) found->second->revision = ++next_revision_;
  return OkStatus();
}

void WorkerPool::TakeEntry(Item& item, Worker& worker, const WorkerResult& result) {
  const std::string& id = worker.state.worker_id;
  const size_t index = static_cast<size_t>(result.entry.index);
  if (index >= item.leased_entries.size()) return Acknowledge(id, result.sequence);
  const int entry = item.leased_entries[index];
  if (item.entries[static_cast<size_t>(entry)].done) return Acknowledge(id, result.sequence);
  if (!item.timings.contains(entry)) item.heard = now_;
  if (item.is_plan_set()) {
    item.timings[entry] = result.entry;
    return Acknowledge(id, result.sequence);
  }
  item.attempts[item.attempt].seen[result.sequence] = Item::Seen::kPending;
  Finish(item, entry, result.entry);
  Delivery& delivery = item.inbox.back();
  delivery.worker_id = id;
  delivery.sequence = result.sequence;
  delivery.attempt = item.attempt;
}

// The executor died, which ended the attempt. The entry that crashed it is tried again, on another
// worker where there is one; after attempts_max crashes it is quarantined.
void WorkerPool::TakeCrash(Item& item, Worker& worker, const WorkerResult& result) {
  const std::string id = worker.state.worker_id;
  Acknowledge(id, result.sequence);
  const size_t index = static_cast<size_t>(result.entry.index);
  if (result.entry.index < 0 || index >= item.leased_entries.size()) {
    return LoseAttempt(item, Message(result.entry.status));
  }
  const int entry = item.leased_entries[index];
  item.avoid.insert(id);
  Release(item);
  Item::Entry& crashed = item.entries[static_cast<size_t>(entry)];
  if (crashed.done || ++crashed.crashes < options_.attempts_max) return;
  EntryResult failure;
  failure.index = entry;
  failure.status =
      Err(StatusCode::kInternal, "quarantined after {} crashed executors, the last: {}",
          crashed.crashes, Message(result.entry.status));
  LogWarn("entry {} of item {}: {}", entry, item.id, Message(failure.status));
  Finish(item, entry, failure, /*quarantined=*/true);
  // Without the input there is nothing to pair the other candidates with.
  if (item.is_plan_set() && entry == 0) FailRest(item, failure.status);
}

// The worker reported that the attempt is over.
void WorkerPool::EndAttempt(Item& item, const Status& status) {
  if (!status.ok() && status.code() == StatusCode::kUnavailable) {
    return LoseAttempt(item, Message(status));
  }
  for (auto& [entry, result] : item.timings) Finish(item, entry, result);
  Release(item);
  FailRest(item, status.ok() ? Err(StatusCode::kInternal, "the worker gave no result") : status);
}

void WorkerPool::LoseAttempt(Item& item, const std::string& why) {
  LogWarn("item {}: attempt {} lost: {}", item.id, item.attempt, why);
  item.avoid.insert(item.worker);
  Release(item);
  if (++item.losses >= options_.losses_max) {
    FailRest(item,
             Err(StatusCode::kUnavailable, "lost {} workers, the last: {}", item.losses, why));
  }
}

// Ends the lease; from now on results of its attempt are refused.
void WorkerPool::Release(Item& item) {
  const auto found = workers_.find(item.worker);
  if (found != workers_.end()) {
    item.device_time += now_ - found->second->leased;
    found->second->item = 0;
    found->second->in_hand = false;
    found->second->revision = ++next_revision_;
  }
  item.worker.clear();
  item.attempt.clear();
  item.leased_work.reset();
  item.leased_entries.clear();
  item.timings.clear();
}

void WorkerPool::Finish(Item& item, int entry, EntryResult result, bool quarantined) {
  item.entries[static_cast<size_t>(entry)].done = true;
  result.index = entry;
  item.inbox.push_back({.entry = entry, .result = std::move(result), .quarantined = quarantined});
}

void WorkerPool::FailRest(Item& item, const Status& status) {
  for (size_t entry = 0; entry < item.entries.size(); ++entry) {
    if (item.entries[entry].done) continue;
    EntryResult failure;
    failure.status = status;
    Finish(item, static_cast<int>(entry), std::move(failure));
  }
}

// --- Items ---

int WorkerPool::Idle(const std::string& device, const Environment& environment) const {
  return static_cast<int>(std::ranges::count_if(workers_, [&](const auto& entry) {
    const auto& [id, worker] = entry;
    return Serves(*worker) && worker->item == 0 && !resting_.contains(id) &&
           Fits(*worker, device, environment);
  }));
}

uint64_t WorkerPool::Submit(Nanos now, ItemRequest request) {
  now_ = now;
  auto item = std::make_unique<Item>();
  item->id = next_item_++;
  item->entries.resize(static_cast<size_t>(EntryCount(*request.work)));
  item->request = std::move(request);
  const uint64_t id = item->id;
  items_.emplace(id, std::move(item));
  Assign(now);
  return id;
}

std::vector<Delivery> WorkerPool::Take(uint64_t id) {
  Item& item = *items_.at(id);
  std::vector<Delivery> deliveries(std::make_move_iterator(item.inbox.begin()),
                                   std::make_move_iterator(item.inbox.end()));
  item.inbox.clear();
  return deliveries;
}

bool WorkerPool::Ended(uint64_t id) const {
  const Item& item = *items_.at(id);
  return item.AllDone() && item.inbox.empty();
}

std::string WorkerPool::WaitsFor(uint64_t id) const {
  const Item& item = *items_.at(id);
  if (item.AllDone()) return "";
  if (item.worker.empty()) {
    return fmt::format("a {}worker of device {}", AnyFits(item) ? "free " : "",
                       item.request.device);
  }
  const WorkerReport& state = workers_.at(item.worker)->state;
  return state.attempt == item.attempt ? state.waits_for : "";
}

Nanos WorkerPool::DeviceTime(Nanos now, uint64_t id) const {
  const Item& item = *items_.at(id);
  if (item.worker.empty()) return item.device_time;
  return item.device_time + (now - workers_.at(item.worker)->leased);
}

void WorkerPool::Durable(const Delivery& delivery) {
  if (delivery.worker_id.empty()) return;
  for (const auto& [id, item] : items_) {
    const auto attempt = item->attempts.find(delivery.attempt);
    if (attempt == item->attempts.end()) continue;
    attempt->second.seen[delivery.sequence] = Item::Seen::kDurable;
  }
  Acknowledge(delivery.worker_id, delivery.sequence);
}

void WorkerPool::Withdraw(uint64_t id) {
  const auto found = items_.find(id);
  if (found == items_.end()) return;
  Release(*found->second);
  items_.erase(found);
}

int WorkerPool::waiting() const {
  return static_cast<int>(std::count_if(items_.begin(), items_.end(), [](const auto& item) {
    return item.second->worker.empty() && !item.second->AllDone();
  }));
}

bool WorkerPool::Serves(const Worker& worker) {
  return worker.session != 0 && worker.state.health == WorkerHealth::kServing;
}

bool WorkerPool::Fits(const Worker& worker, const std::string& device,
                      const Environment& environment) const {
  return worker.state.device == device && worker.state.environment == environment &&
         !drained_.contains(worker.state.worker_id);
}

bool WorkerPool::Fits(const Worker& worker, const Item& item) const {
  return Fits(worker, item.request.device, item.request.environment);
}

bool WorkerPool::AnyFits(const Item& item) const {
  return std::any_of(workers_.begin(), workers_.end(),
                     [&](const auto& worker) { return Fits(*worker.second, item); });
}

bool WorkerPool::AnyServesInAnother(const Item& item) const {
  return std::any_of(workers_.begin(), workers_.end(), [&](const auto& worker) {
    const WorkerReport& state = worker.second->state;
    return Serves(*worker.second) && state.device == item.request.device &&
           state.environment != item.request.environment;
  });
}

// Returns an idle worker that serves the item's device and environment, preferably one that the
// item does not avoid, or null. A resting worker waits for those that are busy.
WorkerPool::Worker* WorkerPool::Choose(const Item& item) {
  Worker* avoided = nullptr;
  Worker* resting = nullptr;
  bool another_serves = false;
  for (const auto& [id, worker] : workers_) {
    if (!Serves(*worker) || !Fits(*worker, item)) continue;
    const bool rests = resting_.contains(id);
    another_serves |= !rests;
    if (worker->item != 0) continue;
    if (!rests && !item.avoid.contains(id)) return worker.get();
    (rests ? resting : avoided) = worker.get();
  }
  if (avoided != nullptr) return avoided;
  return another_serves ? nullptr : resting;
}

void WorkerPool::Assign(Nanos now) {
  for (const auto& [id, item] : items_) {
    if (!item->worker.empty() || item->AllDone()) continue;
    if (Worker* worker = Choose(*item); worker != nullptr) {
      LeaseTo(now, *item, *worker);
      continue;
    }
    if (AnyFits(*item)) {
      item->alone_since.reset();
    } else if (!item->alone_since.has_value()) {
      item->alone_since = now;
    } else if (now - *item->alone_since >= (AnyServesInAnother(*item)
                                                ? options_.other_environment_max
                                                : options_.no_worker_max)) {
      FailRest(*item,
               Err(StatusCode::kUnavailable, "no worker offers device {} with environment {}",
                   item->request.device, item->request.environment));
    }
  }
}

void WorkerPool::LeaseTo(Nanos now, Item& item, Worker& worker) {
  // Entries that crashed before go last, so that a new crash costs the others nothing.
  for (size_t entry = 0; entry < item.entries.size(); ++entry) {
    if (!item.entries[entry].done) item.leased_entries.push_back(static_cast<int>(entry));
  }
  if (!item.is_plan_set()) {
    std::stable_partition(item.leased_entries.begin(), item.leased_entries.end(), [&](int entry) {
      return item.entries[static_cast<size_t>(entry)].crashes == 0;
    });
  }
  item.leased_work =
      std::make_shared<const v1::WorkItem>(Subset(*item.request.work, item.leased_entries));
  item.attempt = fmt::format("e{}.{}", epoch_, next_attempt_++);
  item.attempts[item.attempt];
  item.worker = worker.state.worker_id;
  item.alone_since.reset();
  item.heard = now;
  worker.item = item.id;
  worker.in_hand = false;
  worker.leased = now;
  worker.revision = ++next_revision_;
}

}  // namespace ag
