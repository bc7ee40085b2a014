// Measures a few remembered groups again while no job runs. A time that does not hold any more is
// replaced; where most of what one worker or one import gave does not hold, all of it is forgotten,
// with the answers of its environment. One thread of its own.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "server/store/cache_store.h"
#include "server/workers/dispatcher.h"

namespace ag {

struct SentinelOptions {
  Nanos pause{0};                       // Between two samples of one environment; 0: no sample.
  Nanos idle{std::chrono::minutes(1)};  // How long there must have been no job before one.
  int sample = 8;                       // Rows of a sample.
  // A row has drifted when both of two new measurements differ from it by more than this factor,
  // as far as their intervals say, each beside its canary.
  double drift = 1.25;
  int drifted_min = 3;  // So many drifted rows, and more than half, are no accident of a row.
};

// True when `now` differs from `stored` by more than the factor `drift`. Each time counts in units
// of its canary's, where both have one: a processor that is slower at this hour is no drift.
bool HasDrifted(const Measurement& stored, const Measurement& now, double drift);

class Sentinel {
 public:
  struct Parts {
    WorkRunner& runner;
    CacheStore& cache;
    Clock& clock;
    std::function<std::vector<DeviceOffer>()> offers;
    std::function<bool()> has_jobs;  // Queued or running.
  };
  Sentinel(Parts parts, const SentinelOptions& options);
  ~Sentinel();  // Calls Stop.

  void Start();  // Starts the thread; nothing where `pause` is 0.
  // Ends what is being measured and waits for the thread.
  void Stop();

  // Looks whether a sample is due, and takes it. The thread calls this; a test may do so instead.
  void Tick();

  // Rows that were measured again, undisturbed, since the start.
  struct Counts {
    std::atomic<int64_t> held = 0;
    std::atomic<int64_t> drifted = 0;  // These were replaced.
  };
  const Counts& counts() const { return counts_; }

 private:
  bool IsOver() const;
  void TakeSample(const DeviceOffer& offer);
  std::vector<CacheRow> Choose(const Environment& environment);
  std::map<std::string, CacheRow> MeasureAgain(const DeviceOffer& offer,
                                               const std::vector<CacheRow>& rows);
  void Replace(const std::vector<CacheRow>& measured, const std::vector<CacheRow>& drifted,
               const std::map<std::string, CacheRow>& now);

  const Parts parts_;
  const SentinelOptions options_;
  Counts counts_;
  std::mt19937_64 random_;
  std::optional<Nanos> idle_since_;
  std::map<Environment, Nanos> next_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace ag
