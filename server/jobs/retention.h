// What the store keeps (docs/operations.md, "Size"): jobs that ended until they are too old or the
// disk's share is used up, and of the blobs those that a job or a remembered answer names, that
// were used a short while ago, or that a running job may use. Functions over the stores;
// thread-safe as they are.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/blobs.h"
#include "base/clock.h"
#include "server/jobs/tenant.h"
#include "server/store/cache_store.h"
#include "server/store/jobs_store.h"

namespace ag {

struct JobStores {
  JobsStore* jobs = nullptr;
  CacheStore* cache = nullptr;
  BlobDir* blobs = nullptr;
};

struct RetentionOptions {
  Nanos job_age_max{std::chrono::days(30)};     // Since the end of a job; 0: for ever.
  int64_t blob_bytes_max = int64_t{100} << 30;  // Of all blobs; 0: no limit.
  Nanos blob_pause{std::chrono::hours(1)};      // A blob that nothing names stays so long.
};

struct Removed {
  int64_t jobs = 0, answers = 0, blobs = 0;
  int64_t bytes = 0;  // Of the blobs.
};

// Returns the blobs that jobs name and cannot do without, each with one of those that name it
// ("jobs/7"): what unfinished jobs need, and the results of the others. (An answer whose blobs are
// gone is a miss.)
StatusOr<std::map<std::string, std::string>> NamedBlobs(JobsStore& jobs);

// Removes what is beyond the limits, the oldest jobs first. `now` is a time of day; blobs that were
// used at `in_use_since` or later stay (0: no job runs).
StatusOr<Removed> RemoveOld(const JobStores& stores, const RetentionOptions& options, int64_t now,
                            int64_t in_use_since);
// Whether that would remove something. Reads every row, and changes nothing.
StatusOr<bool> HasOld(const JobStores& stores, const RetentionOptions& options, int64_t now,
                      int64_t in_use_since);

// Removes the tenant's ended jobs for this model and the answers for it, then the blobs that only
// they named, the model's among them. REQUIRES: none of its jobs runs or waits.
StatusOr<Removed> RemoveModel(const JobStores& stores, const Digest& model, const Tenant& tenant);

}  // namespace ag
