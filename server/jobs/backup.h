// Copies of a store: made while it is in use, checked, and put back (docs/store.md, "Backup"). A
// backup is a folder that looks like the store: jobs.db, cache.db, blobs/. Functions; one thread at
// a time for one folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "server/jobs/retention.h"

namespace ag {

// Writes copies of the rows of the jobs and of the cache, each as of one moment, into a folder that
// has none.
Status SaveDatabases(const JobStores& stores, const std::string& folder);

struct StoreFacts {
  int64_t jobs = 0, unfinished = 0;
  int64_t measurements = 0, answers = 0;
  int64_t blobs = 0, bytes = 0;
  // What is wrong, a line each: "blob 5f2c...: its bytes have changed". Empty: nothing.
  std::vector<std::string> problems;
};

// Reads every row and hashes every blob of a store or a backup, and writes nothing there. Databases
// of an older version are read as this one would take them over. kNotFound: no store there;
// kUnavailable: a process uses the store; kDataLoss: the jobs cannot be read.
StatusOr<StoreFacts> CheckStore(const std::string& folder, Clock& clock);

// Copies a backup to `folder`, which has no store yet, once CheckStore has found no problem in it.
// What makes it a store comes last: an interrupted call leaves none, and is repeated.
// kFailedPrecondition: there is a store; kDataLoss: the backup has problems.
StatusOr<StoreFacts> RestoreStore(const std::string& backup, const std::string& folder,
                                  Clock& clock);

}  // namespace ag
