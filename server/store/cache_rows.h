// The layout of cache.db's rows: how they are written, with checksums, and read back. Private to
// server/store. Thread-safe apart from the database that is passed in.
#pragma once

#include "server/store/cache_store.h"
#include "server/store/sqlite.h"

namespace ag {

inline constexpr char kMeasurementColumns[] =
    "row, problem, environment, code, reason, measurement, measured_unix_seconds, summary, hits, "
    "checksum, worker, import, is_checked, namespace";

inline constexpr char kRegionColumns[] =
    "row, key, depends_on, environment, entry, copies, models, made_unix_seconds, checksum, "
    "namespace";

// Returns what stands in the column `key`: `key` itself in the namespace "".
std::string StoredKey(const Digest& key, const std::string& cache_namespace);

// Inserts or replaces the row. REQUIRES: key == GroupKey(row.problem, row.environment).
Status WriteRow(Database& db, const Digest& key, const CacheRow& row,
                const std::string& cache_namespace);

// Returns the current row of `statement`, which selects kMeasurementColumns. kDataLoss: its
// checksum or a number is wrong.
StatusOr<CacheRow> ReadCacheRow(const Statement& statement);

// Inserts the row, which is made and used `now`. Where its key is known it replaces what was found,
// and what was seen is added.
Status WriteRegion(Database& db, const RegionRow& row, int64_t now,
                   const std::string& cache_namespace);

// Returns the current row of `statement`, which selects kRegionColumns. kDataLoss: its checksum is
// wrong.
StatusOr<RegionRow> ReadRegion(const Statement& statement);

}  // namespace ag
