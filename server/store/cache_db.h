// cache.db: the store of measurements in an SQLite file (docs/store.md has the schema). One process
// opens the file; another process reads its snapshot, below a cache of its own.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "server/store/cache_store.h"
#include "server/store/sqlite.h"

namespace ag {

inline constexpr char kCacheFile[] = "cache.db";  // Its name in the folder of a store.

struct CacheDbOptions {
  std::string path;
  Nanos failure_expiry{std::chrono::hours(24)};  // A failure is tried again after this.
  int64_t regions_max = 20'000;                  // About 1 KiB each.
  std::string snapshot;                          // Where WriteSnapshot writes; "": nowhere.
  std::string cache_namespace;                   // Part of every key.
  // The snapshot of another process's cache: its rows are found here too, and it is never written.
  // When it cannot be read it is left out, see base(). "": none. REQUIRES: `path` names no file
  // yet.
  std::string base;
  WriteObserver on_write = nullptr;
};

// Opens or creates the file. kFailedPrecondition: newer schema, or read-only. Renames a corrupt
// file to <path>.corrupt-N and one of an older schema to <path>.old-N, with a warning.
StatusOr<std::unique_ptr<CacheStore>> OpenCacheDb(const CacheDbOptions& options, Clock& clock);

}  // namespace ag
