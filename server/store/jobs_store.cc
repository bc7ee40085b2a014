#include "server/store/jobs_store.h"

#include "base/reason.h"

namespace ag {

Status NoJob(int64_t id) {
  return Because(Reason::kJobMissing, Err(StatusCode::kNotFound, "no job jobs/{}", id));
}

}  // namespace ag
