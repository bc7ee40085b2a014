// Runs each job in a process of its own (docs/adr/011-a-process-for-each-job.md), so that the
// coordinator's memory does not depend on the models and a job ends when it must: by a
// cancellation, its time, its memory, or a crash, which is its own. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "server/pipeline/pipeline.h"

namespace ag {

struct JobProcessOptions {
  PipelineOptions pipeline;
  std::string program;      // The binary with the role "job"; "": this program.
  std::string blobs_below;  // As BlobDir::Open's.
  Nanos offer_wait_max{std::chrono::minutes(15)};  // Wait for a worker of the device.
  // Bytes of private memory that the process may write; mapped files do not count.
  uint64_t memory_bytes_max = uint64_t{4} << 30;
  // How long after the job's budget, counted from its begin, it waits for a measuring lock.
  Nanos wait_overrun_max{std::chrono::seconds(3)};
  // What the process may compute, apart from measurements and waits: beyond the job's budget; after
  // a cancellation or the server's stop; and after a cancellation when a faster plan was found and
  // is to be confirmed.
  Nanos overrun_max{std::chrono::minutes(2)};
  Nanos cancel_max{std::chrono::milliseconds(500)};
  Nanos keep_max{std::chrono::seconds(30)};
};

class JobProcesses : public JobRunner {
 public:
  JobProcesses(Dispatcher& dispatcher, GroupCache& cache, Clock& clock, JobProcessOptions options);
  // Runs the job for one environment of its device, and anew, with its whole budget, for another
  // one when the first has left or its workers were not to be had. kResourceExhausted: the process
  // reached its memory limit; kDeadlineExceeded: it computed beyond the budget, or no worker or
  // measuring lock was to be had within it; kInternal: it crashed.
  StatusOr<JobOutcome> Run(const Job& job, const JobControl& control) override;

 private:
  StatusOr<std::vector<DeviceOffer>> WaitForOffers(const std::string& device,
                                                   const JobControl& control);
  // Returns the offer with the fewest jobs, of those where the job has not failed and where ONNX
  // Runtime is as the request asks, and counts one more for it.
  DeviceOffer TakePlace(const v1::OptimizeRequest& request, const std::vector<DeviceOffer>& offers,
                        const std::set<Environment>& failed);
  void GivePlace(const DeviceOffer& offer);
  // Notes in `failed` the offer's environment, unless it has left, and returns whether the device
  // is offered in one that is not in it.
  bool CanRunElsewhere(const DeviceOffer& offer, std::set<Environment>& failed);
  struct Ran {
    StatusOr<JobOutcome> outcome;
    bool lost_workers = false;  // It ended because they were not to be had.
  };
  Ran RunAt(const DeviceOffer& offer, const Job& job, const JobControl& control);

  Dispatcher& dispatcher_;
  GroupCache& cache_;
  Clock& clock_;
  const JobProcessOptions options_;
  Mutex mutex_;
  std::map<std::pair<std::string, Environment>, int> running_ AG_GUARDED_BY(mutex_);
};

}  // namespace ag
