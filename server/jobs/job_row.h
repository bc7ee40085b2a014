// How a job is stored in a row of the store. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "server/jobs/job.h"
#include "server/store/jobs_store.h"

namespace ag {

// Returns `row` with all that may change of the job, its name, client and tenant. What does not
// change (the request, `created` and the dedupe key) stays, and so does `cancel`.
JobRow ToRow(const Job& job, JobRow row);

// Returns the job; one that has ended has the progress that its result tells of. kDataLoss: the row
// does not parse.
StatusOr<Job> FromRow(const JobRow& row);

// Returns the name of a request among those of all tenants, whose names have no slash; "" of "".
std::string StoredId(const std::string& tenant, const std::string& request_id);

// Returns a message of stored bytes. kDataLoss "`what` does not parse".
template <class T>
StatusOr<T> DecodeStored(std::string_view bytes, std::string_view what) {
  T message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Err(StatusCode::kDataLoss, "{} does not parse", what);
  }
  return message;
}

}  // namespace ag
