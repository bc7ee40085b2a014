#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/file.h"
#include "base/file_reader.h"
#include "client/cli/counter_examples.h"
#include "client/cli/job_text.h"
#include "client/cli/progress.h"
#include "client/cli/verbs.h"
#include "wire/json_wire.h"

namespace ag {
namespace {

namespace v1 = autograph::v1;
using Json = nlohmann::ordered_json;

std::string FullName(const std::string& name) {
  return name.starts_with("jobs/") ? name : "jobs/" + name;
}

// Prints the whole job and returns the exit code of its end.
int PrintJob(Context& context, const v1::Job& job) {
  if (context.flags().json) {
    context.Print(ToJson(job));
  } else if (job.has_result()) {
    context.Print(ResultTable(job));
  } else {
    context.Print(
        fmt::format("{}  {}  {}", job.name(), job.request().model_name(), ProgressLine(job)));
  }
  if (job.state() != v1::Job::FAILED) return kExitOk;
  if (!context.flags().json) context.Print("  error        " + job.error().message());
  return kExitFailed;
}

std::string ListLine(const v1::Job& job) {
  std::string what = ProgressLine(job);
  if (job.has_result()) {
    what = VerdictText(job.result());
    if (job.result().cache().model_hit()) what += " (from the cache)";
  }
  if (job.state() == v1::Job::FAILED) what = "failed: " + job.error().message();
  return fmt::format("{:<24} {}  {:<20} {:<10} {}", job.name(),
                     FormatUnixSeconds(static_cast<int64_t>(job.created_unix_seconds())),
                     job.request().model_name(), job.request().device(), what);
}

}  // namespace

StatusOr<Digest> DigestOfModel(const std::string& model) {
  const auto given = ParseDigest(model);
  return given.ok() ? given : Sha256OfFile(model);
}

StatusOr<int> RunJobsList(Context& context, const JobsFlags& flags) {
  v1::ListJobsRequest request;
  v1::Job::State state = v1::Job::STATE_UNSPECIFIED;
  AG_CHECK(flags.state.empty() || v1::Job::State_Parse(flags.state, &state));
  request.set_state(state);
  request.set_device(flags.device);
  if (!flags.model.empty()) {
    AG_LET(const Digest model, DigestOfModel(flags.model));
    request.set_model_digest(model.Hex());
  }
  if (!flags.since.empty()) {
    AG_LET(const double seconds, ParseDuration(flags.since));
    request.set_created_since_unix_seconds(RealClock().UnixSeconds() -
                                           static_cast<int64_t>(seconds));
  }
  AG_LET(Client* const client, context.Connect(""));
  std::vector<v1::Job> jobs;
  do {
    request.set_page_size(flags.count - static_cast<int>(jobs.size()));
    AG_LET(const auto page, client->ListJobs(request));
    jobs.insert(jobs.end(), page.jobs().begin(), page.jobs().end());
    request.set_page_token(page.next_page_token());
  } while (static_cast<int>(jobs.size()) < flags.count && !request.page_token().empty());
  if (context.flags().json) {
    Json list = Json::array();
    for (const v1::Job& job : jobs) list.push_back(Json::parse(ToJson(job)));
    context.Print(list.dump(2));
    return kExitOk;
  }
  for (const v1::Job& job : jobs) context.Print(ListLine(job));
  const bool is_any =
      flags.state.empty() && flags.device.empty() && flags.model.empty() && flags.since.empty();
  if (jobs.empty()) context.Note(is_any ? "no jobs yet" : "no such jobs");
  return kExitOk;
}

StatusOr<int> RunJobsShow(Context& context, const JobsFlags& flags) {
  AG_LET(Client* const client, context.Connect(""));
  const auto job = client->GetJob(FullName(flags.name));
  return job.ok() ? PrintJob(context, *job) : context.Fail(job.status());
}

StatusOr<int> RunJobsWatch(Context& context, const JobsFlags& flags) {
  AG_LET(Client* const client, context.Connect(""));
  ProgressPrinter printer(context);
  const auto job = client->Watch(FullName(flags.name), [&](const v1::Job& state) {
    printer.Show(state);
    return true;
  });
  printer.Clear();
  return job.ok() ? PrintJob(context, *job) : context.Fail(job.status());
}

StatusOr<int> RunJobsCancel(Context& context, const JobsFlags& flags) {
  AG_LET(Client* const client, context.Connect(""));
  v1::CancelJobRequest request;
  request.set_name(FullName(flags.name));
  request.set_for_all(flags.for_all);
  const auto job = client->CancelJob(request);
  if (!job.ok()) return context.Fail(job.status());
  if (job->state() < v1::Job::SUCCEEDED && job->waiters() > 0) {
    context.Note(fmt::format("{} goes on: {} other requests wait for it (--for-all stops it)",
                             job->name(), job->waiters()));
  }
  return PrintJob(context, *job);
}

namespace {

// Returns the job with its best so far as its result; one that ends meanwhile as it is.
StatusOr<v1::Job> BestSoFar(Context& context, Client& client, const std::string& name) {
  ProgressPrinter printer(context);
  auto job = client.PublishBest(name, [&](const v1::Job& state) {
    printer.Show(state);
    return true;
  });
  printer.Clear();
  if (!job.ok() || job->state() >= v1::Job::SUCCEEDED) return job;
  if (job->has_best_error()) {
    return Err(static_cast<StatusCode>(job->best_error().code()), "{}",
               job->best_error().message());
  }
  job->mutable_result()->Swap(job->mutable_best_so_far());
  return job;
}

}  // namespace

StatusOr<int> RunJobsFetch(Context& context, const JobsFlags& flags) {
  for (const std::string& path : {flags.output, flags.report}) {
    if (path.empty()) continue;
    AG_TRY(CheckWritable(path));
  }
  AG_LET(Client* const client, context.Connect(""));
  const std::string name = FullName(flags.name);
  AG_LET(const auto job, flags.so_far ? BestSoFar(context, *client, name) : client->GetJob(name));
  if (job.state() == v1::Job::FAILED) {
    (void)PrintJob(context, job);
    return kExitFailed;
  }
  if (!job.has_result()) {
    const bool over = job.state() == v1::Job::CANCELLED;
    return Err(StatusCode::kFailedPrecondition, "{} is {}: {}", job.name(), StateText(job.state()),
               over ? "nothing was verified before that"
                    : "autograph jobs watch waits for its end, --so-far fetches its best so far");
  }
  AG_TRY(TakeResult(*client, job, flags.output, flags.report));
  const int code = PrintJob(context, job);
  if (!context.flags().json) {
    context.Print(TableRow("written", WrittenText(job, flags.output)) +
                  CounterExampleRows(job, flags.output));
  }
  return code;
}

StatusOr<int> RunJobsDelete(Context& context, const JobsFlags& flags) {
  AG_LET(const Digest model, DigestOfModel(flags.model));
  AG_LET(Client* const client, context.Connect(""));
  AG_LET(const auto deleted, client->DeleteModel(model));
  context.Print(context.flags().json
                    ? ToJson(deleted)
                    : fmt::format("model {}: deleted with {} jobs, {} remembered answers and {} "
                                  "files of {} bytes",
                                  model.Short(), deleted.jobs(), deleted.answers(), deleted.blobs(),
                                  deleted.bytes()));
  return kExitOk;
}

StatusOr<int> RunWorkersList(Context& context) {
  AG_LET(Client* const client, context.Connect(""));
  AG_LET(const auto response, client->ListWorkers());
  Json list = Json::array();
  for (const v1::WorkerSummary& worker : response.workers()) {
    list.push_back(Json::parse(ToJson(worker)));
    if (context.flags().json) continue;
    context.Print(fmt::format("{:<28} {:<12} {:<12} {} {}", worker.worker_id(), worker.device(),
                              v1::WorkerState::Health_Name(worker.health()),
                              worker.attempt().empty() ? "idle" : worker.attempt(),
                              worker.reason()));
  }
  if (context.flags().json) context.Print(list.dump(2));
  if (response.workers().empty()) context.Note("no worker is connected");
  return kExitOk;
}

StatusOr<int> RunWorkersAdmit(Context& context, const std::string& worker_id) {
  AG_LET(Client* const client, context.Connect(""));
  AG_TRY(client->AdmitWorker(worker_id));
  context.Print(context.flags().json ? Json{{"worker_id", worker_id}}.dump(2)
                                     : fmt::format("worker {} gets work again", worker_id));
  return kExitOk;
}

StatusOr<int> RunHealth(Context& context, const std::string& name) {
  if (context.flags().server.empty()) {
    return Err(StatusCode::kInvalidArgument, "health: whose? name it with --server HOST:PORT");
  }
  // Not context.Connect, whose first call wants a token where the server asks for one.
  AG_LET(const auto client, Client::Connect(context.flags().server, context.flags().channel));
  const auto serves = client->Serves(name);
  if (serves.status().code() == StatusCode::kNotFound) {
    return Err(StatusCode::kInvalidArgument, "health: \"{}\" is none of live, ready, workers",
               name);
  }
  AG_TRY(serves);
  const std::string text = *serves ? "SERVING" : "NOT_SERVING";
  context.Print(context.flags().json ? Json{{"name", name}, {"status", text}}.dump(2) : text);
  return *serves ? kExitOk : kExitFailed;
}

}  // namespace ag
