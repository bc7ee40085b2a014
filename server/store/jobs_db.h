// jobs.db: the store of jobs in an SQLite file (docs/store.md has the schema).
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "server/store/jobs_store.h"
#include "server/store/sqlite.h"

namespace ag {

inline constexpr char kJobsFile[] = "jobs.db";  // Its name in the folder of a store.

// Opens or creates the file. kDataLoss: it is corrupt; the message says how to go on.
// kFailedPrecondition: newer or older schema, or read-only. kUnavailable: a process has it open.
StatusOr<std::unique_ptr<JobsStore>> OpenJobsDb(const std::string& path, Clock& clock,
                                                WriteObserver on_write = nullptr);

}  // namespace ag
