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

double MedianOf(const std::deque<double>& values) {
  return Median(std::vector<double>(values.begin(), values.end()));
}

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
  AG_LET(quiet_before_, Look(before_));
  return OkStatus();
}

StatusOr<bool> CanaryWatch::IsQuiet() {
  others_busy_ = load_ != nullptr && load_->BusyCores() > kForeignCoresMax;
  AG_LET(const bool quiet_after, Look(after_));
  return quiet_before_ && quiet_after;
}

StatusOr<bool> CanaryWatch::Look(std::deque<double>& recent) {
  double looks[kLooks];
  for (double& look : looks) {
    AG_LET(const Nanos canary, device_.Canary());
    look = static_cast<double>(canary.count());
  }
  const double now = *std::ranges::min_element(looks);
  if (!(now > 0)) return Err(StatusCode::kDataLoss, "canary: {} ns", now);
  const double usual = recent.empty() ? now : MedianOf(recent);
  recent.push_back(now);
  if (recent.size() > kRecentMax) recent.pop_front();
  return std::abs(now / usual - 1) <= band_;
}

double CanaryWatch::median_ns() const { return MedianOf(before_); }

int RunsPerSample(double run_ns, double sample_ns, int runs_max) {
  return static_cast<int>(std::clamp(std::ceil(sample_ns / run_ns), 1.0, double(runs_max)));
}

}  // namespace ag
