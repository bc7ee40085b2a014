// The engines on which the conformance suites of the stores run (jobs_store_test.cc,
// cache_store_test.cc), and rows for tests. A new engine is one more entry of the lists.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "server/store/open_store.h"

namespace ag {

// Where one engine keeps a store. Opened again, when the store from before is gone, it has what
// that one kept.
class StorePlace {
 public:
  virtual ~StorePlace() = default;
  virtual StatusOr<Store> Open(const std::string& cache_namespace) = 0;
  FakeClock clock;
};

struct StoreEngine {
  const char* name;
  std::unique_ptr<StorePlace> (*make)();
  bool saves_copies;  // Its SaveCopy makes files; else it is kUnimplemented.
};
std::vector<StoreEngine> JobsEngines();
std::vector<StoreEngine> CacheEngines();  // Those whose stores have a cache.

JobRow NewJob(const std::string& dedupe_key = "k");
// A measurement of 100 ns in the environment cpu=x.
CacheRow NewRow(const std::string& problem);
std::optional<CacheRow> FindRow(GroupCache& cache, const std::string& problem,
                                const Environment& environment = "cpu=x");

}  // namespace ag
