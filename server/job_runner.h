// What a job does once it runs: a seam, so that the queue is tested without models or devices.
#pragma once

#include <functional>

#include "server/job.h"

namespace ag {

struct JobControl {
  std::function<Status(JobState)> enter;                // A stage began; durable when OK.
  std::function<void(const JobProgress&)> on_progress;  // Without waits_for and elapsed_seconds.
  std::function<void(const std::string&)> on_wait;      // What it waits for; "": nothing.
  std::function<bool()> cancelled;  // Somebody asked the job to stop, or `stopping`.
  std::function<bool()> stopping;   // The server stops: leave at once, without a result.
};

class JobRunner {
 public:
  virtual ~JobRunner() = default;
  // Runs the job to its end and returns the result, whose blobs are stored. A cancelled one returns
  // the best that was verified, or kCancelled. Thread-safe.
  virtual StatusOr<JobResult> Run(const Job& job, const JobControl& control) = 0;
};

}  // namespace ag
