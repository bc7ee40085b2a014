// The life of jobs: accepted durably, queued, run, watched, resumed after a restart.
// docs/protocol.md tells what a client sees. Thread-safe.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/blobs.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "server/dispatcher.h"
#include "server/job_runner.h"
#include "server/store/cache_db.h"
#include "server/store/jobs_db.h"

namespace ag {

struct JobsOptions {
  int runners = 4;      // Jobs that run at once, over all devices.
  int per_device = 1;   // Of one device: beside each other they would disturb the measurements.
  int resumes_max = 5;  // A job that was resumed more often fails.
  std::string rules_digest;  // Part of every answer's key.
  std::function<StatusOr<DeviceOffer>(const std::string&)> find_offer;
  std::function<Status(const JobRequest&)>
      validate;  // May be null. What the request alone can tell.
};

struct JobStores {
  JobsDb* jobs = nullptr;
  CacheDb* cache = nullptr;
  BlobDir* blobs = nullptr;
};

class Jobs {
 public:
  // Takes up what an earlier life left unfinished, then starts the runners.
  static StatusOr<std::unique_ptr<Jobs>> Start(const JobStores& stores, JobRunner& runner,
                                               Clock& clock, JobsOptions options);
  ~Jobs();  // As Shutdown.

  // Answers at once; see Optimizer.Optimize for what with.
  StatusOr<Job> Accept(JobRequest request);

  StatusOr<Job> Get(int64_t id);  // kNotFound.
  struct ListOptions {
    std::string state;  // "": all.
    int64_t before_id = 0;
    int rows_max = 50;
  };
  StatusOr<std::vector<Job>> List(const ListOptions& options);
  // Waits until the job's version is above `version`, it is terminal, the jobs stop, or `timeout`.
  StatusOr<Job> Wait(int64_t id, uint64_t version, Nanos timeout);
  StatusOr<Job> Cancel(int64_t id);

  // Stops the runners; what runs stays unfinished in the store and is resumed by the next start.
  void Shutdown();
  bool stopping();

  struct Counts {
    int queued = 0;
    int running = 0;
  };
  Counts counts();

 private:
  struct Live {
    Mutex change;  // One Change at a time, over its write; taken before mutex_.
    Job job;
    JobRow row;  // As last stored.
    bool running = false;
    bool cancel = false;
    std::optional<Nanos> began;  // When it began to run, in this life.
  };
  using LivePtr = std::shared_ptr<Live>;

  Jobs(const JobStores& stores, JobRunner& runner, Clock& clock, JobsOptions options);
  Status Resume();
  Status ResumeOne(JobRow row);
  StatusOr<std::optional<Job>> Repeated(const JobRequest& request, const Digest& body);
  StatusOr<std::optional<Job>> Remembered(const JobRequest& request, const std::string& key,
                                          const std::string& body);
  StatusOr<Job> Insert(Job job, const std::string& dedupe_key, const std::string& body);
  StatusOr<Job> FromRow(const JobRow& row);
  std::string AnswerKey(const JobRequest& request, const Environment& environment,
                        const std::string& onnxruntime) const;
  // The job as it is now: time that passed and what it waits for are not stored.
  Job Now(Live& live) AG_REQUIRES(mutex_);
  void SayWaits(const LivePtr& live, const std::string& what);

  void RunnerMain();
  LivePtr NextQueued() AG_REQUIRES(mutex_);
  void RunOne(const LivePtr& live);
  void Finish(const LivePtr& live, StatusOr<JobResult> result);
  // Changes the job, stores it, then shows it; a terminal job stays as it is. The store is not
  // written under mutex_.
  Status Change(const LivePtr& live, const std::function<void(Job&)>& change);
  void Remember(const JobRequest& request, const JobResult& result);

  const JobStores stores_;
  JobRunner& runner_;
  Clock& clock_;
  const JobsOptions options_;
  Mutex accept_mutex_;  // One Accept at a time, so that equal requests find each other.
  Mutex mutex_;
  CondVar changed_;
  std::map<int64_t, LivePtr> live_ AG_GUARDED_BY(mutex_);     // Not terminal, by id.
  std::map<std::string, int> running_ AG_GUARDED_BY(mutex_);  // By device.
  // The last progress of the latest jobs that have ended, by id: a row keeps only what the result
  // tells.
  std::map<int64_t, JobProgress> ended_ AG_GUARDED_BY(mutex_);
  bool stopping_ AG_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace ag
