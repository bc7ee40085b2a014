// Whether others use the processors while we measure, and waiting until they do not.
#pragma once

#include <sys/types.h>

#include <deque>
#include <functional>
#include <span>
#include <string_view>

#include "base/clock.h"

namespace ag {

// Tells how much of the machine others use.
class InterferenceMonitor {
 public:
  virtual ~InterferenceMonitor() = default;
  // How many cores others kept busy lately, on the average. Cheap enough to ask after each block.
  virtual double BusyCores() = 0;
};

// Above this others are in the way: daemons that wake up now and then are not.
inline constexpr double kForeignCoresMax = 0.2;

// What was used so far of the cores that this process may run on.
struct ProcessorTimes {
  Nanos at{0};    // When this was read.
  Nanos busy{0};  // By everybody, what other virtual machines took included.
  Nanos own{0};   // By us.
};

// Differences of such readings: over kWindow, or since the first when that was later.
class ProcessorMonitor : public InterferenceMonitor {
 public:
  using Read = std::function<ProcessorTimes()>;
  ProcessorMonitor(Read read, Clock& clock) : read_(std::move(read)), clock_(clock) {}
  double BusyCores() override;

  // The kernel counts in steps of 10 ms, core by core; a shorter window would not tell 0.2 cores.
  static constexpr Nanos kWindow{400'000'000};
  static constexpr Nanos kReadEvery{40'000'000};

 private:
  const Read read_;
  Clock& clock_;
  std::deque<ProcessorTimes> readings_;
  double busy_cores_ = 0;
};

// /proc/stat, less what this process, its parent (the agent, the command line) and `helpers` used.
// A machine without it never has foreign load. One thread.
ProcessorTimes ReadProcessorTimes(std::span<const pid_t> helpers = {});

// The busy and stolen time in the text of /proc/stat, in its ticks, of the cores for which
// `is_ours` is true.
int64_t BusyTicks(std::string_view proc_stat, const std::function<bool(int)>& is_ours);

// Waits until others are quiet, while it has credit for that: kCreditMax at first, and a share of
// the time that passes between waits. So a machine that is never quiet costs little.
class QuietWait {
 public:
  QuietWait(InterferenceMonitor& load, Clock& clock)
      : load_(load), clock_(clock), last_(clock.Now()) {}
  void Wait(Nanos until);  // `until` at the latest.

  static constexpr Nanos kCreditMax{1'000'000'000};
  static constexpr int kEarnedIn = 20;  // So long for a credit of one.

 private:
  InterferenceMonitor& load_;
  Clock& clock_;
  Nanos credit_ = kCreditMax;
  Nanos last_;
};

}  // namespace ag
