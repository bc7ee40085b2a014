#include "device/profile/session.h"

#include <algorithm>
#include <cmath>

#include "plan/interval.h"

namespace ag {
namespace {

// The thread's last use of a device, which is used by one thread at a time.
struct Warmth {
  const Device* device = nullptr;
  const Clock* clock = nullptr;
  Nanos last{0};
};
thread_local Warmth warmth;

}  // namespace

void MarkBusy(Device& device, Clock& clock) { warmth = {&device, &clock, clock.Now()}; }

Status WarmUp(Device& device, const ProfileOptions& options, Clock& clock) {
  const Nanos now = clock.Now();
  const bool same = warmth.device == &device && warmth.clock == &clock && now >= warmth.last;
  if (same && now - warmth.last < options.idle_max) return OkStatus();
  for (Nanos spent{0}; spent < options.warm_up;) {
    const Nanos begin = clock.Now();
    AG_LET(const Nanos canary, device.Canary());
    // A look takes longer than the canary says where the device waits for the host; a simulated one
    // takes no time by the clock, or none at all.
    spent += std::max({canary, clock.Now() - begin, Nanos(1000)});
  }
  MarkBusy(device, clock);
  return OkStatus();
}

Status CanaryWatch::Begin() {
  AG_LET(quiet_before_, Look());
  return OkStatus();
}

StatusOr<bool> CanaryWatch::IsQuiet() {
  others_busy_ = load_ != nullptr && load_->BusyCores() > kForeignCoresMax;
  AG_LET(const bool quiet_after, Look());
  return quiet_before_ && quiet_after;
}

StatusOr<bool> CanaryWatch::Look() {
  double looks[kLooks];
  for (double& look : looks) {
    AG_LET(const Nanos canary, device_.Canary());
    look = static_cast<double>(canary.count());
  }
  const double now = Median(looks);
  if (!(now > 0)) return Err(StatusCode::kDataLoss, "canary: {} ns", now);
  const double before = recent_.empty() ? now : median_ns();
  recent_.push_back(now);
  if (recent_.size() > kRecentMax) recent_.pop_front();
  return std::abs(now / before - 1) <= band_;
}

double CanaryWatch::median_ns() const {
  return Median(std::vector<double>(recent_.begin(), recent_.end()));
}

int RunsPerSample(double run_ns, double sample_ns, int runs_max) {
  return static_cast<int>(std::clamp(std::ceil(sample_ns / run_ns), 1.0, double(runs_max)));
}

}  // namespace ag
