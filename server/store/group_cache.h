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
};

}  // namespace ag
