#include "server/store/testing/store_engines.h"

#include "base/file.h"
#include "plan/fusion/group_problem.h"
#include "server/store/testing/memory_jobs.h"

namespace ag {
namespace {

class FolderPlace : public StorePlace {
 public:
  StatusOr<Store> Open(const std::string& cache_namespace) override {
    return OpenStore({.folder = folder_.path(), .cache_namespace = cache_namespace}, clock);
  }

 private:
  TempDir folder_ = *TempDir::Make("store-engine-");
};

class MemoryPlace : public StorePlace {
 public:
  StatusOr<Store> Open(const std::string&) override {
    return Store{.jobs = OpenMemoryJobs(tables_), .cache = nullptr};
  }

 private:
  const std::shared_ptr<MemoryTables> tables_ = MakeMemoryTables();
};

template <class Place>
std::unique_ptr<StorePlace> Make() {
  return std::make_unique<Place>();
}

}  // namespace

std::vector<StoreEngine> JobsEngines() {
  return {{"Sqlite", &Make<FolderPlace>, true}, {"Memory", &Make<MemoryPlace>, false}};
}

std::vector<StoreEngine> CacheEngines() { return {{"Sqlite", &Make<FolderPlace>, true}}; }

JobRow NewJob(const std::string& dedupe_key) {
  JobRow row;
  row.state = "QUEUED";
  row.device = "cpu";
  row.request = std::string("re\0quest", 8);
  row.version = 1;
  row.dedupe_key = dedupe_key;
  row.client = "somebody";
  return row;
}

CacheRow NewRow(const std::string& problem) {
  CacheRow row;
  row.problem = problem;
  row.environment = "cpu=x";
  row.measurement = {{100, 90, 110}, 21, 1, 5, "kernel", {{"other", 150}}, false, 12};
  row.summary = "conv: Conv";
  return row;
}

std::optional<CacheRow> FindRow(GroupCache& cache, const std::string& problem,
                                const Environment& environment) {
  return cache.Find(GroupKey(problem, environment), problem, environment);
}

}  // namespace ag
