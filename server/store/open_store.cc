#include "server/store/open_store.h"

#include "base/file.h"
#include "server/store/cache_db.h"
#include "server/store/jobs_db.h"

namespace ag {
namespace {

constexpr char kSnapshotFile[] = "cache.snapshot";

WriteObserver ObserverOf(std::string_view store, const StoreOptions& options) {
  if (!options.on_write) return nullptr;
  return [store, on_write = options.on_write](Nanos took) { on_write(store, took); };
}

}  // namespace

StatusOr<Store> OpenStore(const StoreOptions& options, Clock& clock) {
  Store store;
  AG_LET(store.jobs, OpenJobsDb(fmt::format("{}/{}", options.folder, kJobsFile), clock,
                                ObserverOf("jobs", options)));
  CacheDbOptions cache;
  cache.path = fmt::format("{}/{}", options.folder, kCacheFile);
  cache.failure_expiry = options.failure_expiry;
  cache.cache_namespace = options.cache_namespace;
  cache.on_write = ObserverOf("cache", options);
  // Only a store of its own is left for others to read.
  std::string& snapshot = options.below.empty() ? cache.snapshot : cache.base;
  snapshot =
      fmt::format("{}/{}", options.below.empty() ? options.folder : options.below, kSnapshotFile);
  AG_LET(store.cache, OpenCacheDb(cache, clock));
  return store;
}

bool HasStore(const std::string& folder) {
  return FileExists(fmt::format("{}/{}", folder, kJobsFile));
}

std::vector<std::string> FilesOfStore(const std::string& folder) {
  std::vector<std::string> names;
  for (const char* file : {kJobsFile, kCacheFile}) {
    for (const char* suffix : {"", "-wal"}) {  // What only a log holds counts.
      const std::string name = fmt::format("{}{}", file, suffix);
      if (FileExists(fmt::format("{}/{}", folder, name))) names.push_back(name);
    }
  }
  return names;
}

}  // namespace ag
