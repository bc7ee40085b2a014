// The store of jobs in memory: a second engine for the conformance suite, so that it states no
// promise that only SQLite keeps. It makes no files, so nothing outlives the tables.
#pragma once

#include <memory>

#include "server/store/jobs_store.h"

namespace ag {

struct MemoryTables;  // What it keeps while nobody has it open.
std::shared_ptr<MemoryTables> MakeMemoryTables();

std::unique_ptr<JobsStore> OpenMemoryJobs(std::shared_ptr<MemoryTables> tables);

}  // namespace ag
