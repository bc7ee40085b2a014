// The snapshot of a cache: a copy that is complete from the first moment, is never written again,
// and is what other processes read. SQLite before 3.51.3 can corrupt a WAL that two connections
// reset, so only the cache's holder may open the living file. Private to server/store. One thread
// at a time for one database.
#pragma once

#include <string>

#include "server/store/cache_store.h"
#include "server/store/sqlite.h"

namespace ag {

// Writes all rows of `db` to a new file and renames it to `path` when it is complete.
Status SaveSnapshot(Database& db, const std::string& path);

// True when the file has the same contents as `db`; false also when it cannot be read.
bool IsSnapshotOf(const std::string& path, Database& db);

// Attaches the snapshot `path` below `db`. A query that names no schema then reads both, our row
// before one of the same key below; writes to schema "main" change our file only. New rows get
// higher numbers than those below. On an error `db` is as it was.
CacheBase OpenBase(Database& db, const std::string& path);

}  // namespace ag
