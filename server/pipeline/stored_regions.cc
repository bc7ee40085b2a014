#include "server/pipeline/stored_regions.h"

#include "base/log.h"

namespace ag {

StatusOr<RegionEntry> StoredRegions::Find(const RegionKey& key, int copies) {
  const auto row = options_.skip ? std::nullopt : cache_.FindRegion(key.depends_on, copies);
  if (!row.has_value()) {
    return Err(StatusCode::kNotFound, "region {}: not remembered", key.digest().Short());
  }
  counted_.insert(key.digest());
  StatusOr<RegionEntry> entry = DecodeRegionEntry(row->entry);
  if (entry.ok()) return entry;
  LogWarn("cache: taken as a miss: {}: {}", key.digest().Short(), Message(entry.status()));
  return Err(StatusCode::kNotFound, "{}", Message(entry.status()));
}

Status StoredRegions::Put(const RegionKey& key, const RegionEntry& entry, int copies) {
  const bool is_counted = counted_.contains(key.digest());
  return Within(cache_.PutRegion({.depends_on = key.depends_on,
                                  .environment = key.environment,
                                  .entry = EncodeRegionEntry(entry),
                                  .copies = is_counted ? 0 : copies,
                                  .models = is_counted ? 0 : 1}),
                "region");
}

}  // namespace ag
