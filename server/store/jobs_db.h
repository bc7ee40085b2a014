// jobs.db: every job that was ever acknowledged (docs/store.md has the schema). Rows hold the
// request and the result as opaque bytes, which server/ encodes. What a call that returned OK wrote
// survives a kill -9 and a power cut. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
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

struct JobsDbOptions {
  std::string path;
  std::string vfs;  // Tests only.
};

// Returns the error for a job that there is none of, and for one that is not the caller's.
Status NoJob(int64_t id);

class JobsDb {
 public:
  // Opens or creates the file. kDataLoss: it is corrupt; the message says how to go on.
  // kFailedPrecondition: newer or older schema, or read-only.
  static StatusOr<std::unique_ptr<JobsDb>> Open(const JobsDbOptions& options, Clock& clock);
  ~JobsDb();

  // Writes a copy of all rows, as they are at this moment, to a file that is not there yet.
  Status SaveCopy(const std::string& path);

  // Increases the epoch by one and returns it. Called once per start, before anything else.
  StatusOr<uint64_t> OpenEpoch();

  // Stores a new job and returns its id. A `request_id` that is not empty names this job from now
  // on.
  StatusOr<int64_t> Insert(const JobRow& row, const std::string& request_id,
                           const std::string& body_digest);
  // Replaces all columns but id, request, created, client, tenant and dedupe_key. kNotFound: no
  // such job.
  Status Update(const JobRow& row);

  StatusOr<JobRow> Get(int64_t id);  // kNotFound: no such job.
  struct ListOptions {
    std::string state;      // "": all.
    int64_t before_id = 0;  // 0: from the newest.
    int rows_max = 50;
    std::optional<std::string> tenant;  // None: of all.
    int64_t created_since = 0;          // Unix seconds.
    std::string device;                 // "": of all.
  };
  StatusOr<std::vector<JobRow>> List(const ListOptions& options);  // Newest first.
  StatusOr<std::vector<JobRow>> Unfinished();                      // Oldest first.
  // Returns the newest unfinished job with this key, if any.
  StatusOr<std::optional<JobRow>> FindUnfinished(const std::string& dedupe_key);
  struct StateCount {
    std::string state;
    int64_t jobs = 0;
  };
  StatusOr<std::vector<StateCount>> CountByState();

  struct RequestId {
    int64_t job = 0;
    std::string body_digest;
    bool left = false;  // It does not wait any more.
  };
  StatusOr<std::optional<RequestId>> FindRequestId(const std::string& request_id);
  // Adds one request that waits for an existing job, under this id unless that is empty; or takes
  // one off.
  Status Join(int64_t job, const std::string& request_id, const std::string& body_digest);
  Status Leave(int64_t job, const std::string& request_id);

  // Returns jobs that ended, with ids above `after`, by id.
  StatusOr<std::vector<JobRow>> Ended(int64_t after, int rows_max);
  // Removes jobs that ended, with their request ids; leaves those that have not ended.
  Status Remove(const std::vector<int64_t>& ids);

  // Device seconds that a tenant used in one hour; hours count from 1970.
  struct HourOfUse {
    std::string tenant;
    int64_t hour = 0;
    double seconds = 0;
  };
  // Adds to what is known of the hour, and forgets hours before `oldest`.
  Status AddDeviceUse(const HourOfUse& use, int64_t oldest);
  StatusOr<std::vector<HourOfUse>> DeviceUseSince(int64_t hour);

  // Notes that the tenant has this blob: it sent its bytes, or a job of its made it.
  Status OwnBlob(const std::string& tenant, const std::string& digest);
  StatusOr<bool> OwnsBlob(const std::string& tenant, const std::string& digest);
  // Forgets that the tenant has it; "": all of them.
  Status DisownBlob(const std::string& digest, const std::string& tenant = "");
  StatusOr<bool> IsBlobOwned(const std::string& digest);  // By any tenant.

 private:
  struct State;
  explicit JobsDb(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ag
