// The store of jobs: every job that was ever acknowledged, with its request ids, its tenant's blobs
// and the time that devices spent. Rows hold the request and the result as opaque bytes, which
// server/ encodes.
//
// What each engine promises (jobs_store_test.cc states it for all of them):
// - A call that returned OK is on the disk: it survives a kill -9 and a power cut.
// - A call is all or nothing. After an error nothing of it is visible in this process; after a
//   crash it is there as a whole or not at all. The store can be used on after an error.
// - A call sees every call that ended before it began, of any thread.
// - Errors: kNotFound: no such job; kInvalidArgument: as the function says; kDataLoss: stored bytes
//   are wrong. What the disk did not do is a fault of the host (AsHostFault): kResourceExhausted
//   for a full disk, else kInternal.
// Thread-safe. One process opens a store.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace ag {

struct JobRow {
  int64_t id = 0;     // Increasing; 0: not stored yet.
  std::string state;  // "QUEUED", ..., as in docs/protocol.md.
  bool terminal = false;
  std::string device;
  std::string request;  // Encoded.
  std::string result;   // Encoded; empty: none.
  int error_code = 0;
  std::string error_message;
  std::string error_reason;  // ReasonOf; "": of a job that failed before version 8.
  int64_t created_unix_seconds = 0;
  int64_t finished_unix_seconds = 0;
  uint64_t version = 0;
  int resumed = 0;            // Starts that took the job up again.
  int crashes = 0;            // Those of them after a process that ended while the job ran.
  bool cancel = false;        // The job was cancelled.
  std::string dedupe_key;     // Equal requests have equal keys.
  std::string client;         // Of the first request.
  int waiters = 1;            // Requests that wait for the job.
  std::string tenant;         // Whose job it is; "": made without a token.
  double device_seconds = 0;  // That workers spent on it.
};

// Returns the error for a job that there is none of, and for one that is not the caller's.
Status NoJob(int64_t id);
// Returns the error for a request id that names this job already.
Status RequestIdIsTaken(const std::string& request_id, int64_t job);

class JobsStore {
 public:
  virtual ~JobsStore() = default;

  // Writes a copy of all rows, as they are at this moment, into a folder that has none, as files
  // that OpenStore (open_store.h) opens. kUnimplemented: the engine makes no files.
  virtual Status SaveCopy(const std::string& folder) = 0;

  // Increases the epoch by one and returns it: 1 for a new store. Called once per start, before
  // anything else.
  virtual StatusOr<uint64_t> OpenEpoch() = 0;

  // Stores a new job and returns its id, which is above those of all earlier jobs, removed ones
  // too. A `request_id` that is not empty names this job from now on. kInvalidArgument: it names a
  // job already.
  virtual StatusOr<int64_t> Insert(const JobRow& row, const std::string& request_id,
                                   const std::string& body_digest) = 0;
  // Replaces all columns but id, request, created, client, tenant and dedupe_key, of all these jobs
  // or of none. kNotFound: no such job.
  virtual Status UpdateAll(std::span<const JobRow> rows) = 0;
  Status Update(const JobRow& row) { return UpdateAll({&row, 1}); }

  virtual StatusOr<JobRow> Get(int64_t id) = 0;  // kNotFound: no such job.
  struct ListOptions {
    std::string state;      // "": all.
    int64_t before_id = 0;  // 0: from the newest.
    int rows_max = 50;
    std::optional<std::string> tenant;  // None: of all.
    int64_t created_since = 0;          // Unix seconds.
    std::string device;                 // "": of all.
  };
  // Returns the jobs that fit every option, the newest first. REQUIRES: rows_max > 0.
  virtual StatusOr<std::vector<JobRow>> List(const ListOptions& options) = 0;
  virtual StatusOr<std::vector<JobRow>> Unfinished() = 0;  // Oldest first.
  // Returns the newest unfinished job with this key, if any.
  virtual StatusOr<std::optional<JobRow>> FindUnfinished(const std::string& dedupe_key) = 0;
  struct StateCount {
    std::string state;
    int64_t jobs = 0;
  };
  virtual StatusOr<std::vector<StateCount>> CountByState() = 0;  // Sorted by state.

  struct RequestId {
    int64_t job = 0;
    std::string body_digest;
    bool left = false;  // It does not wait any more.
  };
  virtual StatusOr<std::optional<RequestId>> FindRequestId(const std::string& request_id) = 0;
  // Adds one request that waits for an existing job, under this id unless that is empty; or takes
  // one off. kNotFound: no such job; kInvalidArgument: the id names a job already. Leave REQUIRES
  // that the id is empty, or of this job and has not left.
  virtual Status Join(int64_t job, const std::string& request_id,
                      const std::string& body_digest) = 0;
  virtual Status Leave(int64_t job, const std::string& request_id) = 0;

  // Returns jobs that ended, with ids above `after`, by id. REQUIRES: rows_max > 0.
  virtual StatusOr<std::vector<JobRow>> Ended(int64_t after, int rows_max) = 0;
  // Removes jobs that ended, with their request ids; leaves those that have not ended. There need
  // not be such jobs.
  virtual Status Remove(const std::vector<int64_t>& ids) = 0;

  // Device seconds that a tenant used in one hour; hours count from 1970.
  struct HourOfUse {
    std::string tenant;
    int64_t hour = 0;
    double seconds = 0;
  };
  // Adds to what is known of the hour, and forgets hours before `oldest`.
  virtual Status AddDeviceUse(const HourOfUse& use, int64_t oldest) = 0;
  virtual StatusOr<std::vector<HourOfUse>> DeviceUseSince(int64_t hour) = 0;  // In no order.

  // Notes that the tenant has this blob: it sent its bytes, or a job of its made it.
  virtual Status OwnBlob(const std::string& tenant, const std::string& digest) = 0;
  virtual StatusOr<bool> OwnsBlob(const std::string& tenant, const std::string& digest) = 0;
  // Forgets that the tenant has it; "": all of them. There need not be such a tenant.
  virtual Status DisownBlob(const std::string& digest, const std::string& tenant) = 0;
  virtual StatusOr<bool> IsBlobOwned(const std::string& digest) = 0;  // By any tenant.
};

}  // namespace ag
