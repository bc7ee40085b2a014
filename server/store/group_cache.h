// What a job needs of the store of measurements; CacheStore has it, and the process of a job asks
// the coordinator for it. Thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.h"
#include "plan/measurement.h"

namespace ag {

// One stored measurement of a group, or of a pair of groups run together; or its failure.
struct CacheRow {
  std::string problem;  // Canonical bytes of the group problem or the pair problem.
  Environment environment;
  Status status;  // Not OK: the measurement failed, and no number below counts.
  Measurement measurement;
  std::string summary;  // For people.
  int64_t measured_unix_seconds = 0;
  int64_t hits = 0;
  std::string worker;      // Who measured it; "": not known.
  int64_t import = 0;      // The import that it came by; 0: measured for this store.
  bool is_checked = true;  // A worker has said that the device has its kernels, or measured them.
};

// What is remembered of one region of graphs (search/region_store.h).
struct RegionRow {
  std::string depends_on;  // RegionKey's; the row's key is made of it.
  Environment environment;
  std::string entry;               // EncodeRegionEntry's bytes.
  int64_t copies = 0, models = 0;  // That were seen, in how many searches of models.
  int64_t made_unix_seconds = 0;   // When it was put; 0 for one that is to be put.
};

class GroupCache {
 public:
  virtual ~GroupCache() = default;
  // Returns the row, or nothing for a miss: the key is unknown, the row expired or is corrupt, or
  // the problem's bytes differ from the stored ones. A cache that cannot be read is a miss with a
  // warning, never an error. Does not count hits; Count does. REQUIRES: key == GroupKey(problem,
  // environment); the caller needs it for Count as well.
  virtual std::optional<CacheRow> Find(const Digest& key, std::string_view problem,
                                       const Environment& environment) = 0;
  virtual Status Put(const CacheRow& row) = 0;  // Replaces the row of the same key.
  // Adds to the counters, and one hit to each of `keys`.
  virtual Status Count(int64_t hits, int64_t misses, const std::vector<Digest>& keys) = 0;
  virtual Status SetChecked(const Digest& key) = 0;  // REQUIRES: as Find.

  // Returns the row, or nothing for a miss, as Find. Counts one more model with so many copies.
  virtual std::optional<RegionRow> FindRegion(const std::string& depends_on, int64_t copies) = 0;
  // Replaces the row of the same key, and adds its copies and models to what was seen. Where there
  // are too many rows, those that were not used for longest go.
  virtual Status PutRegion(const RegionRow& row) = 0;
};

}  // namespace ag
