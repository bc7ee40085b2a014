// The parts that measurements of groups and of plans share: the warm device, the canary, the number
// of runs in a sample. One thread at a time.
#pragma once

#include <deque>

#include "device/profile/profile.h"

namespace ag {

// Keeps the device busy for options.warm_up unless this thread used it within options.idle_max.
Status WarmUp(Device& device, const ProfileOptions& options, Clock& clock);
void MarkBusy(Device& device, Clock& clock);  // Notes that the device has just run something.

// Watches the canary and foreign load. A block of samples lies between two looks; it is quiet when
// at both looks the canary's time was close to the recent median of such looks. Looks before and
// after a block are not compared with each other: what was timed has taken the canary's place in
// the caches. On a processor with 2 MiB of second cache the first runs after a block took 1.5 and
// 1.25 times as long, and 19 of 20 blocks were thrown away.
class CanaryWatch {
 public:
  CanaryWatch(Device& device, const ProfileOptions& options)
      : device_(device), band_(options.canary_band), load_(options.interference) {}

  // Begin looks before a block, IsQuiet after it.
  Status Begin();
  StatusOr<bool> IsQuiet();
  bool others_busy() const { return others_busy_; }  // Foreign load, at the last IsQuiet.
  double median_ns() const;

 private:
  // Compares the fastest of kLooks runs with the median of `recent`.
  StatusOr<bool> Look(std::deque<double>& recent);

  static constexpr int kLooks = 3;
  static constexpr size_t kRecentMax = 8;  // Slow drift moves the median; a jump does not.
  Device& device_;
  const double band_;
  InterferenceMonitor* const load_;
  bool quiet_before_ = true;
  bool others_busy_ = false;
  std::deque<double> before_, after_;  // The recent looks.
};

// Returns the number of runs that make a sample of at least `sample_ns` when one takes `run_ns`.
int RunsPerSample(double run_ns, double sample_ns, int runs_max);

}  // namespace ag
