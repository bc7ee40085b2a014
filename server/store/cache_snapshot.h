// How a cache goes from the process that has it to one that has not: as a copy that is whole from
// the first moment and never written again. SQLite before 3.51.3 can corrupt a WAL that two
// connections reset, so nobody but its holder may open the living file. Private to server/store.
#pragma once

#include <string>

#include "server/store/cache_db.h"
#include "server/store/sqlite.h"

namespace ag {

// Writes all that `db` has to `path`, which it replaces by rename when it is whole.
Status SaveSnapshot(Database& db, const std::string& path);

// Whether the file says what `db` says. False also for one that cannot be read.
bool IsSnapshotOf(const std::string& path, Database& db);

// Puts the snapshot `path` below `db`: what is read without naming a schema is read from both, a
// row of ours before one of the same key below; what is written to schema "main" is ours alone. New
// rows get higher numbers than those below. On an error `db` is as it was.
CacheBase OpenBase(Database& db, const std::string& path);

}  // namespace ag
