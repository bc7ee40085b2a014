// The one place that knows which engine keeps a store: SQLite, in the files of a folder. Callers
// see the interfaces only. Functions; one thread at a time for one folder.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "server/store/cache_store.h"
#include "server/store/jobs_store.h"

namespace ag {

struct StoreOptions {
  std::string folder;
  // Another store's folder: the rows that it has left to read are found in the cache too, see
  // CacheStore::base. It is never written. "": none.
  std::string below;
  std::string cache_namespace;                   // Rows and answers of another one are not known.
  Nanos failure_expiry{std::chrono::hours(24)};  // A failure is tried again after this.
  // Hears of each write to "jobs" or "cache" how long it took, on the thread that wrote.
  std::function<void(std::string_view store, Nanos took)> on_write = nullptr;
};

struct Store {
  std::unique_ptr<JobsStore> jobs;
  std::unique_ptr<CacheStore> cache;
};

// Opens or creates the store in a folder that is there. A store of an older version becomes one of
// this version; when that is interrupted, the next call goes on. A cache that cannot be read is set
// aside. kDataLoss: the jobs are corrupt; the message says how to go on. kFailedPrecondition: the
// store is of a newer version, of one too old to read, or read-only. kUnavailable: a process has it
// open.
StatusOr<Store> OpenStore(const StoreOptions& options, Clock& clock);

// True when the folder holds a store, or a copy of one (JobsStore::SaveCopy).
bool HasStore(const std::string& folder);
// The names of the files in a folder that belong to a store or a copy that nobody has open. Whoever
// copies them elsewhere writes the first one last: with it a folder has a store.
std::vector<std::string> FilesOfStore(const std::string& folder);

}  // namespace ag
