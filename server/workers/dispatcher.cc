#include "server/workers/dispatcher.h"

#include <algorithm>
#include <tuple>

#include "absl/container/flat_hash_set.h"
#include "base/reason.h"
#include "base/text.h"

namespace ag {
namespace {

// The time that a waiting call sleeps before it checks cancellation and expiry again.
constexpr Nanos kLook = std::chrono::milliseconds(100);

// A worker that was lost comes back within seconds.
Status NoWorker(Status status) {
  return RetryAfter(std::chrono::seconds(5), Because(Reason::kNoWorker, std::move(status)));
}

// Withdraws the item on every way out of Run.
class Withdrawal {
 public:
  explicit Withdrawal(std::function<void()> withdraw) : withdraw_(std::move(withdraw)) {}
  ~Withdrawal() { withdraw_(); }
  Withdrawal(const Withdrawal&) = delete;

 private:
  std::function<void()> withdraw_;
};

}  // namespace

std::vector<DeviceOffer> SettledOffers(std::vector<DeviceOffer> offers) {
  if (std::ranges::any_of(offers, &DeviceOffer::is_settled)) {
    std::erase_if(offers, [](const DeviceOffer& offer) { return !offer.is_settled; });
  }
  return offers;
}

Dispatcher::Dispatcher(uint64_t epoch, const PoolOptions& options, Clock& clock)
    : epoch_(epoch), clock_(clock), pool_(epoch, options) {}

// The parts are made without the lock: they may be large.
std::vector<Dispatcher::Part> Dispatcher::Submit(const ItemRequest& request) {
  int idle = 0;
  {
    MutexLock lock(mutex_);
    pool_.Tick(clock_.Now());
    idle = pool_.Idle(request.device, request.environment);
  }
  std::vector<std::vector<int>> shares = PartsOf(*request.work, std::max(1, idle));
  std::vector<ItemRequest> requests(shares.size(), request);
  if (shares.size() > 1) {
    for (size_t i = 0; i < shares.size(); ++i) {
      requests[i].work = std::make_shared<const v1::WorkItem>(Subset(*request.work, shares[i]));
    }
  }
  std::vector<Part> parts;
  absl::flat_hash_set<int> told;
  MutexLock lock(mutex_);
  for (size_t i = 0; i < shares.size(); ++i) {
    for (int& entry : shares[i]) {
      if (!told.insert(entry).second) entry = -1;
    }
    const uint64_t item = pool_.Submit(clock_.Now(), std::move(requests[i]));
    parts.push_back({item, std::move(shares[i])});
  }
  changed_.NotifyAll();
  return parts;
}

// Nothing while a part is worked on.
std::string Dispatcher::WaitsFor(const std::vector<Part>& parts) {
  std::string first;
  for (const Part& part : parts) {
    if (pool_.Ended(part.item)) continue;
    const std::string waits_for = pool_.WaitsFor(part.item);
    if (waits_for.empty()) return "";
    if (first.empty()) first = waits_for;
  }
  return first;
}

Status Dispatcher::Run(ItemRequest request, const std::function<void(const Delivery&)>& on_result,
                       const std::function<bool()>& cancelled) {
  const auto on_wait = request.on_wait;
  const auto on_device_time = request.on_device_time;
  std::string waits_for;
  const std::vector<Part> parts = Submit(request);
  const Withdrawal withdrawal([&, this] {
    if (!waits_for.empty()) on_wait("");
    Nanos device_time{0};
    {
      MutexLock lock(mutex_);
      for (const Part& part : parts) {
        device_time += pool_.DeviceTime(clock_.Now(), part.item);
        pool_.Withdraw(part.item);
      }
      changed_.NotifyAll();
    }
    if (on_device_time) on_device_time(device_time);
  });
  while (true) {
    std::vector<Delivery> deliveries;
    std::string waits_for_now;
    {
      MutexLock lock(mutex_);
      pool_.Tick(clock_.Now());
      bool has_ended = true;
      for (const Part& part : parts) {
        for (Delivery& delivery : pool_.Take(part.item)) {
          delivery.entry = part.entries[static_cast<size_t>(delivery.entry)];
          deliveries.push_back(std::move(delivery));
        }
        has_ended &= pool_.Ended(part.item);
      }
      if (deliveries.empty()) {
        if (has_ended) return OkStatus();
        changed_.WaitFor(mutex_, kLook);
      }
      waits_for_now = WaitsFor(parts);
    }
    if (on_wait && waits_for_now != waits_for) on_wait(waits_for = waits_for_now);
    for (const Delivery& delivery : deliveries) {
      if (delivery.entry >= 0) on_result(delivery);
    }
    if (!deliveries.empty()) {
      MutexLock lock(mutex_);
      for (const Delivery& delivery : deliveries) pool_.Durable(delivery);
      changed_.NotifyAll();
    }
    if (cancelled && cancelled()) return Err(StatusCode::kCancelled, "cancelled");
  }
}

std::vector<DeviceOffer> Dispatcher::Offers() {
  std::vector<DeviceOffer> offers;
  for (const WorkerView& view : Workers()) {
    const WorkerReport& state = view.state;
    if (state.environment.empty() || state.device_spec.empty()) continue;
    if (state.health != WorkerHealth::kServing) continue;
    const auto known = std::ranges::find_if(offers, [&](const auto& o) {
      return o.device == state.device && o.environment == state.environment;
    });
    if (known != offers.end()) {
      known->is_settled |= view.is_settled;
      continue;
    }
    offers.push_back({state.device, state.device_spec, state.environment, state.simulated,
                      state.onnxruntime, view.is_settled});
  }
  std::sort(offers.begin(), offers.end(), [](const auto& a, const auto& b) {
    return std::tie(a.device, a.environment) < std::tie(b.device, b.environment);
  });
  return offers;
}

StatusOr<std::vector<DeviceOffer>> Dispatcher::FindOffers(const std::string& device) {
  std::vector<DeviceOffer> offers = Offers();
  std::vector<std::string> names;
  for (const DeviceOffer& offer : offers) {
    if (names.empty() || names.back() != offer.device) names.push_back(offer.device);
  }
  if (device.empty() && names.size() > 1) {
    return Because(Reason::kDeviceAmbiguous, Err(StatusCode::kInvalidArgument,
                                                 "device: choose one of {}", Join(names, ", ")));
  }
  if (!device.empty()) std::erase_if(offers, [&](const auto& o) { return o.device != device; });
  if (!offers.empty()) return offers;
  for (const WorkerView& view : Workers()) {
    if (!device.empty() && view.state.device != device) continue;
    return NoWorker(Err(StatusCode::kUnavailable, "device {}: worker {} is {}{}{}",
                        view.state.device, view.state.worker_id,
                        WorkerHealthName(view.state.health), view.state.reason.empty() ? "" : ": ",
                        view.state.reason));
  }
  if (device.empty()) return NoWorker(Err(StatusCode::kUnavailable, "no worker is connected"));
  return NoWorker(Err(StatusCode::kUnavailable, "no worker offers device {}; offered now: {}",
                      device, names.empty() ? "none" : Join(names, ", ")));
}

Status Dispatcher::Connect(const std::string& worker_id, uint64_t session) {
  MutexLock lock(mutex_);
  pool_.Tick(clock_.Now());
  changed_.NotifyAll();
  return pool_.Connect(clock_.Now(), worker_id, session);
}

void Dispatcher::Report(uint64_t session, const WorkerReport& report) {
  MutexLock lock(mutex_);
  pool_.Report(clock_.Now(), session, report);
  changed_.NotifyAll();
}

void Dispatcher::Disconnect(const std::string& worker_id, uint64_t session) {
  MutexLock lock(mutex_);
  pool_.Disconnect(clock_.Now(), worker_id, session);
  changed_.NotifyAll();
}

Dispatcher::ToSend Dispatcher::WaitToSend(const std::string& worker_id, uint64_t last_revision,
                                          Nanos timeout) {
  MutexLock lock(mutex_);
  if (pool_.revision(worker_id) == last_revision) changed_.WaitFor(mutex_, timeout);
  ToSend to_send;
  to_send.revision = pool_.revision(worker_id);
  to_send.changed = to_send.revision != last_revision;
  if (to_send.changed) to_send.desired = pool_.TakeDesired(worker_id);
  return to_send;
}

void Dispatcher::WakeAll() {
  MutexLock lock(mutex_);
  changed_.NotifyAll();
}

std::vector<WorkerView> Dispatcher::Workers() {
  MutexLock lock(mutex_);
  return pool_.Workers(clock_.Now());
}

Status Dispatcher::Admit(const std::string& worker_id) {
  MutexLock lock(mutex_);
  AG_TRY(pool_.Admit(worker_id));
  changed_.NotifyAll();
  return OkStatus();
}

uint64_t Dispatcher::offers_revision() {
  MutexLock lock(mutex_);
  return pool_.offers_revision();
}

int Dispatcher::waiting() {
  MutexLock lock(mutex_);
  return pool_.waiting();
}

void Dispatcher::Tick() {
  MutexLock lock(mutex_);
  pool_.Tick(clock_.Now());
  changed_.NotifyAll();
}

}  // namespace ag
