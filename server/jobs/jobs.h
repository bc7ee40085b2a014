// The life of jobs: accepted, queued, run, watched, resumed after a restart. A job is stored before
// it is acknowledged, and each state before it is shown (docs/protocol.md has the client's view).
// Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/blobs.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "server/jobs/device_use.h"
#include "server/jobs/job_runner.h"
#include "server/jobs/retention.h"
#include "server/jobs/tenant.h"
#include "server/store/cache_store.h"
#include "server/store/jobs_store.h"
#include "server/workers/dispatcher.h"

namespace ag {

struct JobsOptions {
  int runners = 4;  // Jobs that run at once, over all devices.
  int per_device =
      1;  // Jobs of one device in one environment: more would disturb the measurements.
  int crashes_max = 5;  // A job that ran in more processes that crashed fails.
  Nanos host_fault_max{std::chrono::hours(24)};  // A job whose first fault is older fails of it.
  std::string rules_digest;                      // Part of every answer's key.
  std::function<StatusOr<std::vector<DeviceOffer>>(const std::string&)> find_offers;
  std::function<Status(const v1::OptimizeRequest&)>
      validate;                            // May be null. Checks that need the request only.
  std::function<void(const Job&)> on_end;  // May be null. Called when a job that ran has ended.
  DeviceUse::QuotaOf quota_of;             // Null: no tenant has a limit.
};

// Returns the error of a server that stops: another may be there in a moment.
Status Stopping();

class Jobs {
 public:
  // Resumes the jobs that an earlier process left unfinished, then starts the runners. Fails when
  // the store does.
  static StatusOr<std::unique_ptr<Jobs>> Start(const JobStores& stores, JobRunner& runner,
                                               Clock& clock, JobsOptions options);
  ~Jobs();  // Calls Shutdown.

  // Returns at once, without waiting for a run: the known job, a finished job, the running job of
  // an equal request, for which one more waits then, or a new one. A remembered answer is a job
  // that ended; it is stored, and has a name, only for a request with a request_id, and also then
  // it is returned while the disk is full. kInvalidArgument: the request_id was used with another
  // request; kFailedPrecondition: the model was not uploaded; kNotFound: only_cached and no answer;
  // kUnavailable: the server stops, or no worker offers the device; kResourceExhausted: a new job
  // is beyond the tenant's quota. All of it is among the tenant's own: request ids, models, equal
  // requests and answers.
  StatusOr<Job> Accept(v1::OptimizeRequest request, const Tenant& tenant = {});

  StatusOr<Job> Get(int64_t id);  // kNotFound: no such job.
  struct ListOptions {
    std::string state;  // "": all.
    int64_t before_id = 0;
    int rows_max = 50;
    std::optional<std::string> tenant;  // None: of all.
    std::string device;                 // "": of all.
    std::string model_digest;           // "": for all.
    int64_t created_since = 0;          // Unix seconds.
  };
  struct Listed {
    std::vector<Job> jobs;  // The newest first.
    // The next page's before_id; 0: there is no more. One call reads kListedRowsMax rows at most,
    // so a page may be short.
    int64_t next_before_id = 0;
  };
  static constexpr int kListedRowsMax = 5000;
  StatusOr<Listed> List(const ListOptions& options);
  // Waits until the job's version is above `version`, it is terminal, the jobs stop, or `timeout`
  // passed; returns the job then.
  StatusOr<Job> Wait(int64_t id, uint64_t version, Nanos timeout);
  struct CancelOptions {
    std::string request_id;  // Of the request to take off; "": any one.
    bool for_all = false;    // Whoever waits.
  };
  // Takes a request off the job; the last one stops it. kInvalidArgument: the request_id is not of
  // this job.
  StatusOr<Job> Cancel(int64_t id, const CancelOptions& options);
  StatusOr<Job> Cancel(int64_t id) { return Cancel(id, {}); }

  // Asks the job for the best that it has so far; Job::best_version rises when it has come. A job
  // that has ended is left as it is. kNotFound: no such job.
  StatusOr<Job> PublishBest(int64_t id);

  // Notes that the tenant has sent this blob; nothing without a name.
  Status OwnBlob(const Tenant& tenant, const Digest& digest);
  // True when the tenant has sent it, or a job of its made it, or it sees all. Does not ask whether
  // there is such a blob.
  StatusOr<bool> MaySee(const Tenant& tenant, const Digest& digest) const;

  // Writes copies of the databases into a folder (backup.h).
  Status SaveDatabases(const std::string& folder);

  // Removes what the store need not keep (retention.h).
  StatusOr<Removed> RemoveOld(const RetentionOptions& options);
  // Removes the tenant's ended jobs for the model and all that came of them. kFailedPrecondition:
  // one of its jobs has not ended; the message names it. kNotFound: the tenant has neither the
  // model nor jobs for it.
  StatusOr<Removed> DeleteModel(const Digest& model, const Tenant& tenant);

  // Puts the jobs that run back into the store's queue, stops the runners and waits for them. The
  // next start resumes the jobs, and does not count this end against them.
  void Shutdown();
  bool stopping();

  struct Counts {
    int queued = 0;
    int running = 0;
    double oldest_seconds = 0;  // Since the oldest queued job was accepted.
  };
  std::map<std::string, Counts> counts();  // By device, of jobs that have not ended.

 private:
  struct Live {
    Mutex change;  // Held by one Change at a time, also over its write; taken before mutex_.
    Job job;
    JobRow row;  // The row as last stored.
    bool running = false;
    bool cancel = false;
    int best_asked = 0;          // Calls of PublishBest.
    std::optional<Nanos> began;  // When the job began to run, in this process.
    // Faults of the host that it met in this process: the first one, how long the last pause is,
    // and its end.
    std::optional<Nanos> first_fault;
    Nanos pause{0}, pause_end{0};
    std::string waits_for_quota;  // What is said of it; "": the tenant has seconds left.
  };
  using LivePtr = std::shared_ptr<Live>;

  Jobs(const JobStores& stores, JobRunner& runner, Clock& clock, JobsOptions options);
  Status Resume();
  StatusOr<LivePtr> TakeUp(JobRow row);
  StatusOr<std::optional<Job>> Repeated(const v1::OptimizeRequest& request, const Digest& body,
                                        const std::string& tenant);
  StatusOr<std::optional<Job>> Remembered(const v1::OptimizeRequest& request,
                                          const std::string& key, const std::string& body,
                                          const std::string& tenant);
  Status CheckBlobs(const v1::OptimizeRequest& request, const Tenant& tenant) const;
  bool HasBlob(const std::string& digest) const;  // True for "" as well.
  StatusOr<Job> Insert(Job job, const std::string& dedupe_key, const std::string& body);
  // Returns a job that has ended, with the progress that its row lacks while that is remembered.
  StatusOr<Job> Ended(const JobRow& row);
  Status OwnResult(const std::string& tenant, const v1::Result& result);
  StatusOr<std::vector<std::string>> AnswerKeys(const v1::OptimizeRequest& request,
                                                const std::vector<DeviceOffer>& offers,
                                                const std::string& tenant) const;
  std::string AnswerKey(const v1::OptimizeRequest& request, const Environment& environment,
                        const std::string& onnxruntime, const std::string& tenant) const;
  // Returns the job with its elapsed time and what it waits for, which are not stored.
  Job Now(Live& live) AG_REQUIRES(mutex_);
  void SayWaits(const LivePtr& live, const std::string& what);
  void CountDeviceTime(const LivePtr& live, Nanos time);
  void TakeBest(const LivePtr& live, const std::string& tenant, const StatusOr<JobOutcome>& best);

  // Adds a request to the job; false: it has ended, or is about to.
  StatusOr<bool> Join(int64_t id, const std::string& request_id, const std::string& body);
  // Takes a request off the job; false: no other one waits for it. REQUIRES: live.change is held.
  StatusOr<bool> Leave(Live& live, const std::string& request_id);
  void Park();
  void RunnerMain();
  bool HasPlace(const std::string& device) AG_REQUIRES(mutex_);
  // When the first of the jobs that run began, as a time of day; 0: none runs.
  int64_t RunningSince(int64_t now);
  // Says in the job whether it waits for its tenant's quota.
  bool HasQuota(Live& live) AG_REQUIRES(mutex_);
  // Returns the job of the highest priority, and of these the oldest, of the client whose last turn
  // on the job's device is longest ago.
  LivePtr NextQueued() AG_REQUIRES(mutex_);
  void TakeTurn(const Job& job) AG_REQUIRES(mutex_);
  void RunOne(const LivePtr& live);
  // Puts a job off that met a fault of the host. Returns false when it is to end instead.
  bool PutOff(const LivePtr& live, const Status& fault);
  void Finish(const LivePtr& live, StatusOr<JobOutcome> outcome);
  // Changes the job, stores it, then shows it; leaves a terminal job as it is. Does not hold mutex_
  // during the write.
  Status Change(const LivePtr& live, const std::function<void(Job&)>& change);
  void Remember(const v1::OptimizeRequest& request, const JobOutcome& outcome,
                const std::string& tenant);

  const JobStores stores_;
  JobRunner& runner_;
  Clock& clock_;
  const JobsOptions options_;
  std::unique_ptr<DeviceUse> use_;
  Mutex accept_mutex_;  // One Accept at a time, so that equal requests find each other.
  Mutex mutex_;
  CondVar changed_;
  std::map<int64_t, LivePtr> live_ AG_GUARDED_BY(mutex_);     // Jobs that are not terminal, by id.
  std::map<std::string, int> running_ AG_GUARDED_BY(mutex_);  // By device.
  uint64_t turns_ AG_GUARDED_BY(mutex_) = 0;
  std::map<std::pair<std::string, std::string>, uint64_t> last_turn_
      AG_GUARDED_BY(mutex_);  // By device and client.
  // The last progress of the latest jobs that ended, by id; a row keeps only the progress that its
  // result contains.
  std::map<int64_t, v1::Progress> ended_ AG_GUARDED_BY(mutex_);
  bool stopping_ AG_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace ag
