#include "server/jobs/job_row.h"

#include <utility>

#include "base/reason.h"

namespace ag {
namespace {

// Returns the progress that the result contains.
v1::Progress ProgressOf(const v1::Result& result) {
  v1::Progress progress;
  progress.set_round(result.rounds());
  progress.set_graphs(result.graphs() + result.cell_graphs());
  progress.set_candidates(result.candidates());
  progress.set_best_speedup(result.speedup());
  progress.set_groups_measured(result.cache().misses());
  progress.set_cache_hits(result.cache().hits());
  progress.set_elapsed_seconds(result.seconds());
  return progress;
}

}  // namespace

JobRow ToRow(const Job& job, JobRow row) {
  row.id = job.id;
  row.state = v1::Job::State_Name(job.state);
  row.terminal = IsTerminal(job.state);
  row.device = job.request.device();
  row.client = job.client;
  row.waiters = job.waiters;
  row.tenant = job.tenant;
  row.result = job.result.has_value() ? job.result->SerializeAsString() : "";
  row.error_code = static_cast<int>(job.error.code());
  row.error_message = Message(job.error);
  row.error_reason = ReasonOf(job.error);
  row.finished_unix_seconds = job.finished_unix_seconds;
  row.version = job.version;
  row.resumed = job.resumed;
  row.crashes = job.crashes;
  row.device_seconds = job.device_seconds;
  return row;
}

StatusOr<Job> FromRow(const JobRow& row) {
  Job job;
  job.id = row.id;
  if (!v1::Job::State_Parse(row.state, &job.state)) {
    return Err(StatusCode::kDataLoss, "no job state is called {}", row.state);
  }
  AG_LET(job.request, DecodeStored<v1::OptimizeRequest>(row.request, "stored request"));
  if (!row.result.empty()) {
    AG_LET(job.result, DecodeStored<v1::Result>(row.result, "stored result"));
  }
  job.error = row.error_code == 0
                  ? OkStatus()
                  : WithReason(row.error_reason, std::nullopt,
                               Status(static_cast<StatusCode>(row.error_code), row.error_message));
  job.created_unix_seconds = row.created_unix_seconds;
  job.finished_unix_seconds = row.finished_unix_seconds;
  job.version = row.version;
  job.client = row.client;
  job.tenant = row.tenant;
  job.waiters = row.cancel ? 0 : row.waiters;
  job.resumed = row.resumed;
  job.crashes = row.crashes;
  job.device_seconds = row.device_seconds;
  if (!row.terminal) return job;
  if (job.result.has_value()) job.progress = ProgressOf(*job.result);
  job.progress.set_fraction(1);
  return job;
}

std::string StoredId(const std::string& tenant, const std::string& request_id) {
  return tenant.empty() || request_id.empty() ? request_id : tenant + "/" + request_id;
}

}  // namespace ag
