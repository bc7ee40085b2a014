// The search's store of regions in the cache. One job's own; not thread-safe.
#pragma once

#include <set>

#include "search/region_store.h"
#include "server/store/group_cache.h"

namespace ag {

class StoredRegions : public RegionStore {
 public:
  // `skip` finds nothing: what is searched anew is kept in place of what is there.
  struct Options {
    bool skip = false;
  };
  // `cache` must outlive it.
  StoredRegions(GroupCache& cache, Options options) : cache_(cache), options_(options) {}

  // A row that does not decode is a miss, with a warning in the log.
  StatusOr<RegionEntry> Find(const RegionKey& key, int copies) override;
  Status Put(const RegionKey& key, const RegionEntry& entry, int copies) override;

 private:
  GroupCache& cache_;
  const Options options_;
  std::set<Digest> counted_;  // Keys whose copies FindRegion has counted.
};

}  // namespace ag
