// The layout of cache.db's rows: how they are written, sealed and read back. Private to
// server/store. Thread-safe apart from the database that is passed in.
#pragma once

#include "server/store/cache_db.h"
#include "server/store/sqlite.h"

namespace ag {

const std::vector<std::string>& CacheMigrations();

inline constexpr char kMeasurementColumns[] =
    "row, key, problem, environment, code, reason, median_ns, low_ns, high_ns, samples, discarded, "
    "canary_ns, kernel, alternatives, simulated, measured_unix_seconds, summary, hits, seal, "
    "busy_cores";

// Inserts or replaces the row of (problem, environment).
Status WriteRow(Database& db, const CacheRow& row);

// Returns the current row of `statement`, which selects kMeasurementColumns. kDataLoss: its seal,
// its key or a number is wrong.
StatusOr<CacheRow> ReadCacheRow(const Statement& statement);

}  // namespace ag
