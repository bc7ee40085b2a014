// The process of a job (docs/adr/011-a-process-for-each-job.md): it runs the pipeline and asks the
// coordinator for measurements and for what is remembered.
#pragma once

namespace ag {

// Registers the role "job" (base/process.h). REQUIRES: called at the start of main.
void RegisterJobRole();

}  // namespace ag
