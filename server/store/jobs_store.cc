#include "server/store/jobs_store.h"

#include "base/reason.h"

namespace ag {

Status NoJob(int64_t id) {
  return Because(Reason::kJobMissing, Err(StatusCode::kNotFound, "no job jobs/{}", id));
}

Status RequestIdIsTaken(const std::string& request_id, int64_t job) {
  return Because(
      Reason::kRequestIdReused,
      Err(StatusCode::kInvalidArgument, "request_id {} names jobs/{} already", request_id, job));
}

}  // namespace ag
