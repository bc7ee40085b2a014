#include "server/jobs/jobs.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/reason.h"
#include "server/jobs/backup.h"
#include "server/jobs/job_row.h"

namespace ag {
namespace {

// A resumed job's version grows by this, because some versions that watchers saw were not stored.
constexpr uint64_t kResumeStep = 1'000'000;
constexpr size_t kEndedMax = 1000;
constexpr size_t kTurnsMax = 10'000;
constexpr Nanos kPlacesLook = std::chrono::milliseconds(500);
constexpr Nanos kFirstPause = std::chrono::seconds(1), kPauseMax = std::chrono::minutes(1);
constexpr double kRunningMax = 0.99;  // The fraction of a job that has not ended.

double SecondsOf(Nanos duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

Status Stopping() {
  return RetryAfter(
      std::chrono::seconds(1),
      Because(Reason::kServerStopping, Err(StatusCode::kUnavailable, "the server stops")));
}

Jobs::Jobs(const JobStores& stores, JobRunner& runner, Clock& clock, JobsOptions options)
    : stores_(stores), runner_(runner), clock_(clock), options_(std::move(options)) {}

Jobs::~Jobs() { Shutdown(); }

StatusOr<std::unique_ptr<Jobs>> Jobs::Start(const JobStores& stores, JobRunner& runner,
                                            Clock& clock, JobsOptions options) {
  std::unique_ptr<Jobs> jobs(new Jobs(stores, runner, clock, std::move(options)));
  DeviceUse::QuotaOf quota_of = jobs->options_.quota_of;
  if (!quota_of) quota_of = [](const std::string&) { return 0.0; };
  AG_LET(jobs->use_, DeviceUse::Open(*stores.jobs, clock, std::move(quota_of)));
  AG_TRY(jobs->Resume(), "resuming jobs");
  for (int i = 0; i < jobs->options_.runners; ++i) {
    jobs->threads_.emplace_back([raw = jobs.get()] { raw->RunnerMain(); });
  }
  return jobs;
}

// --- Looking ---

Job Jobs::Now(Live& live) {
  v1::Progress& progress = live.job.progress;
  if (live.began.has_value()) {
    progress.set_elapsed_seconds(SecondsOf(clock_.Now() - *live.began));
    const double budget = live.job.request.budget().time_seconds();
    if (budget > 0) {
      progress.set_fraction(std::max(progress.fraction(),
                                     std::min(progress.elapsed_seconds() / budget, kRunningMax)));
    }
    return live.job;
  }
  Job job = live.job;
  for (const auto& [id, other] : live_) {
    if (other.get() == &live || !other->running) continue;  // It was just taken off the queue.
    if (other->job.request.device() != job.request.device()) continue;
    const bool is_own = other->job.tenant == job.tenant;
    job.progress.set_waits_for(fmt::format("{}, which runs on device {}",
                                           is_own ? other->job.name() : "another tenant's job",
                                           job.request.device()));
    break;
  }
  return job;
}

StatusOr<Job> Jobs::Ended(const JobRow& row) {
  AG_LET(Job job, FromRow(row));
  MutexLock lock(mutex_);
  if (const auto ended = ended_.find(job.id); ended != ended_.end()) job.progress = ended->second;
  return job;
}

StatusOr<Job> Jobs::Get(int64_t id) {
  {
    MutexLock lock(mutex_);
    if (const auto found = live_.find(id); found != live_.end()) return Now(*found->second);
  }
  AG_LET(const JobRow row, stores_.jobs->Get(id));
  return Ended(row);
}

StatusOr<Jobs::Listed> Jobs::List(const ListOptions& options) {
  Listed listed;
  int64_t before = options.before_id;
  for (int rows_read = 0; rows_read < kListedRowsMax;) {
    AG_LET(const std::vector<JobRow> rows,
           stores_.jobs->List({options.state, before, options.rows_max, options.tenant,
                               options.created_since, options.device}));
    for (const JobRow& row : rows) {
      before = row.id;
      AG_LET(Job job, row.terminal ? Ended(row) : Get(row.id));
      const std::string& model = options.model_digest;
      if (!model.empty() && job.request.model_digest() != model) continue;
      listed.jobs.push_back(std::move(job));
      if (static_cast<int>(listed.jobs.size()) < options.rows_max) continue;
      listed.next_before_id = before;
      return listed;
    }
    if (static_cast<int>(rows.size()) < options.rows_max) return listed;
    rows_read += static_cast<int>(rows.size());
  }
  listed.next_before_id = before;
  return listed;
}

StatusOr<Job> Jobs::Wait(int64_t id, uint64_t version, Nanos timeout) {
  {
    MutexLock lock(mutex_);
    const Nanos end = clock_.Now() + timeout;
    while (!stopping_) {
      const auto found = live_.find(id);
      if (found == live_.end()) break;
      const Nanos left = end - clock_.Now();
      if (found->second->job.version > version || left <= Nanos{0}) return Now(*found->second);
      changed_.WaitFor(mutex_, left);
    }
  }
  return Get(id);
}

std::map<std::string, Jobs::Counts> Jobs::counts() {
  const auto now = static_cast<double>(clock_.UnixSeconds());
  MutexLock lock(mutex_);
  std::map<std::string, Counts> counts;
  for (const auto& [id, live] : live_) {
    Counts& device = counts[live->job.request.device()];
    ++(live->running ? device.running : device.queued);
    if (live->running) continue;
    const double waited = now - static_cast<double>(live->job.created_unix_seconds);
    device.oldest_seconds = std::max(device.oldest_seconds, waited);
  }
  return counts;
}

Status Jobs::SaveDatabases(const std::string& folder) { return ag::SaveDatabases(stores_, folder); }

// The look reads every row, so requests wait for one only when something goes.
StatusOr<Removed> Jobs::RemoveOld(const RetentionOptions& options) {
  const int64_t now = clock_.UnixSeconds();
  AG_LET(const bool has_old, HasOld(stores_, options, now, RunningSince(now)));
  if (!has_old) return Removed();
  MutexLock accept(accept_mutex_);  // No answer is found whose blobs go.
  return ag::RemoveOld(stores_, options, now, RunningSince(now));
}

int64_t Jobs::RunningSince(int64_t now) {
  MutexLock lock(mutex_);
  std::optional<Nanos> first;
  for (const auto& [id, live] : live_) {
    if (live->began.has_value() && (!first || *live->began < *first)) first = live->began;
  }
  if (!first) return 0;
  return now - std::chrono::duration_cast<std::chrono::seconds>(clock_.Now() - *first).count();
}

StatusOr<Removed> Jobs::DeleteModel(const Digest& model, const Tenant& tenant) {
  MutexLock accept(accept_mutex_);
  {
    MutexLock lock(mutex_);
    for (const auto& [id, live] : live_) {
      if (ModelOf(live->job.request) != model || !tenant.Sees(live->job.tenant)) continue;
      return Because(
          Reason::kModelInUse,
          Err(StatusCode::kFailedPrecondition, "{} is {}: cancel it, or wait for its end",
              live->job.name(), v1::Job::State_Name(live->job.state)));
    }
  }
  AG_LET(const bool is_seen, MaySee(tenant, model));
  const bool has = is_seen && stores_.blobs->Has(model);
  AG_LET(const Removed removed, RemoveModel(stores_, model, tenant));
  if (!has && removed.jobs == 0 && removed.answers == 0) {
    return Err(StatusCode::kNotFound, "no model {}", model.Hex());
  }
  LogInfo("model {}: deleted with {} jobs, {} answers and {} blobs", model.Short(), removed.jobs,
          removed.answers, removed.blobs);
  return removed;
}

bool Jobs::stopping() {
  MutexLock lock(mutex_);
  return stopping_;
}

// --- Changing ---

Status Jobs::Change(const LivePtr& live, const std::function<void(Job&)>& change) {
  MutexLock one_change(live->change);
  JobRow row;
  Job job;
  {
    MutexLock lock(mutex_);
    if (IsTerminal(live->job.state)) return OkStatus();
    job = live->job;
    change(job);
    job.version = live->job.version + 1;
    row = live->row;
    row.cancel = live->cancel;
  }
  row = ToRow(job, std::move(row));
  if (job.result.has_value()) AG_TRY(OwnResult(job.tenant, *job.result));
  AG_TRY(stores_.jobs->Update(row));
  MutexLock lock(mutex_);
  // Progress and cancellation may have changed during the write; they are older than the stored
  // change.
  job.version = std::max(job.version, live->job.version + 1);
  job.device_seconds = std::max(job.device_seconds, live->job.device_seconds);
  job.best_so_far = live->job.best_so_far;
  job.best_error = live->job.best_error;
  job.best_version = live->job.best_version;
  job.progress.set_fraction(std::max(job.progress.fraction(), live->job.progress.fraction()));
  live->job = job;
  live->row = row;
  if (IsTerminal(job.state)) {
    ended_[job.id] = job.progress;
    if (ended_.size() > kEndedMax) ended_.erase(ended_.begin());
    live_.erase(job.id);
  }
  changed_.NotifyAll();
  return OkStatus();
}

StatusOr<Job> Jobs::Cancel(int64_t id, const CancelOptions& options) {
  LivePtr live;
  bool running = false;
  int waiters = 0;
  {
    MutexLock lock(mutex_);
    if (const auto found = live_.find(id); found != live_.end()) live = found->second;
  }
  if (live == nullptr) return Get(id);
  {
    MutexLock one_change(live->change);  // Nobody joins between the last to leave and the end.
    if (!options.for_all) {
      AG_LET(const bool others_wait, Leave(*live, options.request_id));
      if (others_wait) return Get(id);
    }
    MutexLock lock(mutex_);
    live->cancel = true;
    waiters = std::exchange(live->job.waiters, 0);
    running = live->running;
    live->running = true;  // Takes a queued job off the queue.
  }
  if (running) {
    AG_TRY(Change(live, [](Job&) {}));  // Stored, so that a restart does not resume it.
    return Get(id);
  }
  const Status changed = Change(live, [this](Job& job) {
    job.state = v1::Job::CANCELLED;
    job.finished_unix_seconds = clock_.UnixSeconds();
  });
  if (!changed.ok()) {
    MutexLock lock(mutex_);
    live->running = live->cancel = false;
    live->job.waiters = waiters;
    changed_.NotifyAll();
    return changed;
  }
  return Get(id);
}

StatusOr<Job> Jobs::PublishBest(int64_t id) {
  {
    MutexLock lock(mutex_);
    if (const auto found = live_.find(id); found != live_.end()) {
      ++found->second->best_asked;
      return Now(*found->second);
    }
  }
  return Get(id);
}

// --- Running ---

Status Jobs::Resume() {
  AG_LET(std::vector<JobRow> rows, stores_.jobs->Unfinished());
  std::vector<LivePtr> taken_up;
  for (JobRow& row : rows) {
    AG_LET(taken_up.emplace_back(), TakeUp(row));
    row = taken_up.back()->row;
  }
  AG_TRY(stores_.jobs->UpdateAll(rows));  // One write for all: a queue may have thousands.
  MutexLock lock(mutex_);
  for (const LivePtr& live : taken_up) {
    const Job& job = live->job;
    LogInfo("{}: taken up again as {} ({} times)", job.name(), v1::Job::State_Name(job.state),
            job.resumed);
    if (!IsTerminal(job.state)) live_[job.id] = live;
  }
  return OkStatus();
}

StatusOr<Jobs::LivePtr> Jobs::TakeUp(JobRow row) {
  AG_LET(Job job, FromRow(row));
  job.version += kResumeStep;
  ++job.resumed;
  if (job.state != v1::Job::QUEUED) ++job.crashes;  // A planned stop puts what runs back (Park).
  if (row.cancel) {
    job.state = v1::Job::CANCELLED;
  } else if (job.crashes > options_.crashes_max) {
    job.state = v1::Job::FAILED;
    job.error = Err(StatusCode::kInternal,
                    "the coordinator crashed {} times while the job ran: the job may be the cause",
                    job.crashes);
  } else {
    job.state = v1::Job::QUEUED;
  }
  if (IsTerminal(job.state)) job.finished_unix_seconds = clock_.UnixSeconds();
  auto live = std::make_shared<Live>();
  live->row = ToRow(job, std::move(row));
  live->job = std::move(job);
  return live;
}

// Each environment of a device has workers of its own, so each has its jobs.
bool Jobs::HasPlace(const std::string& device) {
  if (running_[device] < options_.per_device) return true;
  const auto offers = options_.find_offers(device);
  const int environments = offers.ok() ? static_cast<int>(SettledOffers(*offers).size()) : 1;
  return running_[device] < options_.per_device * environments;
}

// A job that was accepted before its tenant's seconds were used up waits for new ones.
bool Jobs::HasQuota(Live& live) {
  const Status checked = use_->Check(live.job.tenant);
  v1::Progress& progress = live.job.progress;
  const std::string waits_for = checked.ok() ? "" : Message(checked);
  if (live.waits_for_quota != waits_for) {
    progress.set_waits_for(waits_for);
    ++live.job.version;
    live.waits_for_quota = waits_for;
  }
  return checked.ok();
}

Jobs::LivePtr Jobs::NextQueued() {
  LivePtr next;
  // By the client's last turn, then, among its own jobs, by priority and age.
  std::pair<uint64_t, int> best;
  std::map<std::string, bool> has_place;
  const Nanos now = clock_.Now();
  for (const auto& [id, live] : live_) {
    if (live->running || (live->pause_end > now && !live->cancel)) continue;
    if (!HasQuota(*live)) continue;
    const std::string& device = live->job.request.device();
    if (!has_place.contains(device)) has_place[device] = HasPlace(device);
    if (!has_place[device]) continue;
    const auto last = last_turn_.find({device, live->job.client});
    const std::pair order(last == last_turn_.end() ? 0 : last->second,
                          -live->job.request.priority());
    if (next != nullptr && order >= best) continue;
    next = live;
    best = order;
  }
  return next;
}

void Jobs::TakeTurn(const Job& job) {
  last_turn_[{job.request.device(), job.client}] = ++turns_;
  if (last_turn_.size() <= kTurnsMax) return;
  last_turn_.erase(std::min_element(last_turn_.begin(), last_turn_.end(),
                                    [](auto& a, auto& b) { return a.second < b.second; }));
}

void Jobs::RunnerMain() {
  while (true) {
    LivePtr live;
    {
      MutexLock lock(mutex_);
      // A worker that comes may bring a place, and a pause may end.
      while (!stopping_ && (live = NextQueued()) == nullptr) changed_.WaitFor(mutex_, kPlacesLook);
      if (stopping_) return;
      live->running = true;
      ++running_[live->job.request.device()];
      TakeTurn(live->job);
    }
    RunOne(live);
    MutexLock lock(mutex_);
    --running_[live->job.request.device()];
    changed_.NotifyAll();
  }
}

void Jobs::RunOne(const LivePtr& live) {
  Job job;
  {
    MutexLock lock(mutex_);
    live->began = clock_.Now();
    job = live->job;
  }
  const LogScope scope({{"job", job.name()}, {"trace_id", TraceIdOf(job.request)}});
  JobControl control;
  control.enter = [this, live](v1::Job::State state) {
    if (stopping()) return Err(StatusCode::kCancelled, "the server stops");
    return Change(live, [this, state](Job& job) AG_REQUIRES(mutex_) {
      if (stopping_) return;  // Parked meanwhile.
      job.state = state;
      job.progress.clear_stage();
      job.progress.clear_waits_for();
    });
  };
  control.on_progress = [this, live](const v1::Progress& progress) {
    MutexLock lock(mutex_);
    v1::Progress& shown = live->job.progress;
    v1::Progress said = progress;
    said.set_fraction(std::max(shown.fraction(), std::min(progress.fraction(), kRunningMax)));
    said.set_waits_for(shown.waits_for());
    if (said.chosen_sizes().empty()) said.set_chosen_sizes(shown.chosen_sizes());
    shown.Swap(&said);
    ++live->job.version;
    changed_.NotifyAll();
  };
  control.on_wait = [this, live](const std::string& what) { SayWaits(live, what); };
  control.on_device_time = [this, live](Nanos time) { CountDeviceTime(live, time); };
  control.stopping = [this] { return stopping(); };
  control.cancelled = [this, live] {
    MutexLock lock(mutex_);
    return stopping_ || live->cancel;
  };
  control.best_asked = [this, live] {
    MutexLock lock(mutex_);
    return live->best_asked;
  };
  control.on_best = [this, live, tenant = job.tenant](const StatusOr<JobOutcome>& best) {
    TakeBest(live, tenant, best);
  };
  auto outcome = runner_.Run(job, control);
  if (!outcome.ok() && IsHostFault(outcome.status()) && PutOff(live, outcome.status())) return;
  Finish(live, std::move(outcome));
}

bool Jobs::PutOff(const LivePtr& live, const Status& fault) {
  const Status stored = Change(live, [](Job& job) { job.state = v1::Job::QUEUED; });
  if (!stored.ok()) LogWarn("a job that is put off is not stored so: {}", Message(stored));
  MutexLock lock(mutex_);
  if (stopping_ || live->cancel) return false;
  const Nanos now = clock_.Now();
  if (!live->first_fault.has_value()) live->first_fault = now;
  if (now - *live->first_fault > options_.host_fault_max) return false;
  live->pause = std::clamp(2 * live->pause, kFirstPause, kPauseMax);
  live->pause_end = now + live->pause;
  live->began.reset();
  live->running = false;
  Job& job = live->job;
  job.state = v1::Job::QUEUED;
  job.progress.clear_stage();
  job.progress.set_waits_for(fmt::format("the coordinator's host: {}", Message(fault)));
  ++job.version;
  changed_.NotifyAll();
  LogWarn("{}: put off for {} s: {}", job.name(), live->pause / std::chrono::seconds(1),
          Message(fault));
  return true;
}

// The job's own sum is stored with its next change.
void Jobs::CountDeviceTime(const LivePtr& live, Nanos time) {
  std::string tenant;
  {
    MutexLock lock(mutex_);
    live->job.device_seconds += SecondsOf(time);
    tenant = live->job.tenant;
  }
  if (const Status counted = use_->Add(tenant, time); !counted.ok()) {
    LogWarn("device seconds of {} are not stored: {}", tenant, Message(counted));
  }
}

void Jobs::TakeBest(const LivePtr& live, const std::string& tenant,
                    const StatusOr<JobOutcome>& best) {
  const Status owned = best.ok() ? OwnResult(tenant, best->result) : best.status();
  MutexLock lock(mutex_);
  Job& job = live->job;
  job.best_error = owned;
  if (owned.ok()) job.best_so_far = best->result;
  ++job.best_version;
  ++job.version;
  changed_.NotifyAll();
}

void Jobs::SayWaits(const LivePtr& live, const std::string& what) {
  MutexLock lock(mutex_);
  if (live->job.progress.waits_for() == what) return;
  live->job.progress.set_waits_for(what);
  ++live->job.version;
  changed_.NotifyAll();
}

void Jobs::Finish(const LivePtr& live, StatusOr<JobOutcome> outcome) {
  bool cancel = false;
  v1::OptimizeRequest request;
  std::string name, tenant;
  {
    MutexLock lock(mutex_);
    cancel = live->cancel;
    request = live->job.request;
    name = live->job.name();
    tenant = live->job.tenant;
    // The job stays unfinished in the store; the next start resumes it.
    if (stopping_ && !outcome.ok() && !cancel) return;
  }
  const v1::Job::State state = cancel         ? v1::Job::CANCELLED
                               : outcome.ok() ? v1::Job::SUCCEEDED
                                              : v1::Job::FAILED;
  const auto end = [&](Job& job) {
    job.finished_unix_seconds = clock_.UnixSeconds();
    if (outcome.ok()) job.result = outcome->result;
    job.state = state;
    if (state == v1::Job::FAILED) job.error = outcome.status();
    job.progress.clear_waits_for();
    job.progress.set_fraction(1);
    job.progress.set_elapsed_seconds(SecondsOf(clock_.Now() - *live->began));
  };
  // Stored before the job is shown, so that a client that saw the result finds it in the cache.
  if (outcome.ok() && !cancel) Remember(request, *outcome, tenant);
  // A full disk delays the end of the job but does not lose the result.
  while (true) {
    const Status stored = Change(live, end);
    if (stored.ok()) break;
    LogError("{}: the result cannot be stored yet: {}", name, Message(stored));
    MutexLock lock(mutex_);
    if (stopping_) return;
    changed_.WaitFor(mutex_, std::chrono::seconds(1));
  }
  if (options_.on_end) {
    Job ended;
    {
      MutexLock lock(mutex_);
      ended = live->job;
    }
    options_.on_end(ended);
  }
  LogInfo("{}: {} {}", name, v1::Job::State_Name(state),
          outcome.ok() ? v1::Result::Verdict_Name(outcome->result.verdict())
                       : ToString(outcome.status()));
}

// Stores the answer in the cache, unless it depends on a cause that may be gone tomorrow.
void Jobs::Remember(const v1::OptimizeRequest& request, const JobOutcome& outcome,
                    const std::string& tenant) {
  const v1::Result& result = outcome.result;
  if (result.groups_failed() > 0 || result.stop_reason() == v1::Result::UNAVAILABLE) return;
  if (result.search() == v1::Result::NOT_SEARCHED || outcome.winner_refused) return;
  if (result.search() == v1::Result::STOPPED && outcome.busy) return;
  const StatusOr<Digest> output = ParseDigest(result.output_digest());
  AG_CHECK(output.ok());
  const Status put = stores_.cache->PutModel(
      {AnswerKey(request, result.environment(), result.onnxruntime(), tenant),
       result.SerializeAsString(), *output,
       AnswerSubject{request.model_digest(), request.device(), result.environment(), tenant}});
  if (!put.ok()) {
    LogWarn("model {}: the answer is not remembered: {}", ModelOf(request).Short(), Message(put));
  }
}

// Stores the jobs that run as queued, before anything waits for them: whatever ends this process
// from here on is no crash of theirs.
void Jobs::Park() {
  std::vector<LivePtr> running;
  {
    MutexLock lock(mutex_);
    for (const auto& [id, live] : live_) {
      if (live->job.state != v1::Job::QUEUED) running.push_back(live);
    }
  }
  for (const LivePtr& live : running) {
    const Status parked = Change(live, [](Job& job) { job.state = v1::Job::QUEUED; });
    if (!parked.ok()) LogWarn("a job that runs is not put back: {}", Message(parked));
  }
}

void Jobs::Shutdown() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  Park();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

}  // namespace ag
