// The interface of the code that runs a job; tests of the queue implement it without models or
// devices.
#pragma once

#include <functional>

#include "server/jobs/job.h"

namespace ag {

// How a run ended, or what it published on the way.
struct JobOutcome {
  v1::Result result;
  // Another run may give a better answer: the winner was refused as a file, or others used the
  // processors while a search that time cut short was measured.
  bool winner_refused = false;
  bool busy = false;
};

struct JobControl {
  std::function<Status(v1::Job::State)> enter;  // A stage began; stored when this returns OK.
  std::function<void(const v1::Progress&)> on_progress;  // Without waits_for and elapsed_seconds.
  std::function<void(const std::string&)> on_wait;       // What the job waits for; "": nothing.
  std::function<void(Nanos)> on_device_time;  // A worker has spent this on an item of the job.
  std::function<bool()> cancelled;            // The job was cancelled, or `stopping`.
  std::function<bool()> stopping;             // The server stops: return at once, without a result.
  // How often the best so far was asked for, and where it goes: its blobs are stored, or it says
  // why there is none. One answer is for all asks before it. Both may be null.
  std::function<int()> best_asked;
  std::function<void(const StatusOr<JobOutcome>&)> on_best;
};

class JobRunner {
 public:
  virtual ~JobRunner() = default;
  // Runs the job to its end and returns the result, whose blobs are stored. When `cancelled`,
  // returns the best result that was verified, or kCancelled. Thread-safe.
  virtual StatusOr<JobOutcome> Run(const Job& job, const JobControl& control) = 0;
};

}  // namespace ag
