#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "autograph/v1/worker.grpc.pb.h"
#include "base/log.h"
#include "base/trace.h"
#include "worker/agent.h"
#include "worker/agent_state_wire.h"
#include "worker/executor_process.h"
#include "worker/weights_wire.h"

namespace ag {
namespace {

namespace v1 = autograph::v1;

constexpr Nanos kLookAround{200'000'000};  // How often a waiting thread checks whether to stop.
constexpr double kNoProgressSecondsDefault = 60;

std::string DefaultWorkerId(const std::string& device) {
  char host[256] = "host";
  gethostname(host, sizeof(host) - 1);
  return fmt::format("{}/{}", host, device);
}

}  // namespace

// The reconciling stream and the executor, each driven by one thread; they share AgentState only.
//
// Invariants:
//   - Every message to the coordinator carries the worker's whole state and all results that are
//     not yet acknowledged. It is sent on every change and at least every `tick`, so a lost or
//     repeated message does no harm.
//   - A result is dropped only when its sequence is acknowledged or another epoch begins.
//   - The executor thread runs one attempt at a time: the one in the last desired state. It never
//     runs again the attempt that ended last. When the desired state no longer names the attempt,
//     the executor is killed.
//   - Every wait of both threads is short (kLookAround), or ends by a cancelled call, so Stop
//     returns; before it, a drain waits for the results' acknowledgement, a bounded time.
class Agent::Impl {
 public:
  Impl(std::shared_ptr<grpc::Channel> channel, AgentOptions options, Clock& clock)
      : channel_(std::move(channel)),
        options_(std::move(options)),
        clock_(clock),
        state_(options_.worker_id.empty() ? DefaultWorkerId(options_.device) : options_.worker_id,
               options_.device),
        stream_thread_([this] { KeepStream(); }),
        executor_thread_([this] { DriveExecutor(); }) {}

  ~Impl() { Stop(false); }

  void Stop(bool drain) {
    if (drain) {
      state_.Drain();
      while (state_.IsBusy()) clock_.SleepFor(kLookAround);
      if (!state_.WaitForAcknowledgements(options_.acknowledge_max)) {
        LogWarn("results were not acknowledged; they will be measured again");
      }
    }
    state_.Stop();
    {
      MutexLock lock(mutex_);
      if (context_ != nullptr) context_->TryCancel();
      if (fetch_ != nullptr) fetch_->TryCancel();
    }
    if (stream_thread_.joinable()) stream_thread_.join();
    if (executor_thread_.joinable()) executor_thread_.join();
  }

  Status health() const { return state_.health(); }

 private:
  // The stream's thread: connects, exchanges states, connects again.
  void KeepStream();
  grpc::Status Speak(v1::Workers::Stub& stub);

  // The executor's thread: opens the device, runs the desired work, replaces an executor that died.
  void DriveExecutor();
  Status OpenExecutor();
  std::string BlobDirPath() const;
  void RunTask(const AgentState::Task& task);
  Status PrepareWeights(const AgentState::Task& task);
  void ReportDeath(const AgentState::Task& task, const ExecutorProcess::End& end);
  void GiveUpExecutor(const Status& why, std::string_view when);

  const std::shared_ptr<grpc::Channel> channel_;
  const AgentOptions options_;
  Clock& clock_;
  AgentState state_;

  Mutex mutex_;
  grpc::ClientContext* context_ AG_GUARDED_BY(mutex_) = nullptr;  // Of the open stream.
  grpc::ClientContext* fetch_ AG_GUARDED_BY(mutex_) = nullptr;    // Of the weights' download.

  std::unique_ptr<ExecutorProcess> executor_;  // Used by the executor's thread only.
  std::string executor_blob_dir_;

  std::thread stream_thread_;
  std::thread executor_thread_;
};

void Agent::Impl::KeepStream() {
  const auto stub = v1::Workers::NewStub(channel_);
  bool said = false;
  while (!state_.stopped()) {
    const auto look = std::chrono::system_clock::now() + std::chrono::milliseconds(200);
    if (!options_.in_process && !channel_->WaitForConnected(look)) {
      if (!said) LogWarn("no coordinator answers; trying again until one does");
      said = true;
      continue;
    }
    said = false;
    const grpc::Status end = Speak(*stub);
    if (state_.stopped()) return;
    const bool is_refused = end.error_code() == grpc::StatusCode::UNAUTHENTICATED ||
                            end.error_code() == grpc::StatusCode::PERMISSION_DENIED;
    if (is_refused) {
      LogWarn("the coordinator refuses this worker: {}", end.error_message());
    } else {
      LogInfo("the coordinator ended the stream ({})", end.error_message());
    }
    clock_.SleepFor(options_.reconnect);
  }
}

grpc::Status Agent::Impl::Speak(v1::Workers::Stub& stub) {
  grpc::ClientContext context;
  {
    MutexLock lock(mutex_);
    context_ = &context;
  }
  const auto stream = stub.Synchronize(&context);
  bool reading = true;
  Mutex reading_mutex;
  std::thread reader([&] {
    v1::DesiredState desired;
    while (stream->Read(&desired)) state_.Desire(std::move(desired));
    {
      MutexLock lock(reading_mutex);
      reading = false;
    }
    state_.Nudge();
  });
  const auto is_reading = [&] {
    MutexLock lock(reading_mutex);
    return reading;
  };
  // Sends the whole state, with the device's description, at once, on every change and every tick.
  bool alive = stream->Write(state_.Snapshot(true));
  Nanos last_sent = clock_.Now();
  while (alive && is_reading() && !state_.stopped()) {
    const bool changed = state_.WaitForChange(std::min(kLookAround, options_.tick));
    if (!changed && clock_.Now() - last_sent < options_.tick) continue;
    alive = stream->Write(state_.Snapshot(true));
    last_sent = clock_.Now();
  }
  if (alive && state_.stopped()) stream->Write(state_.Snapshot(false));
  stream->WritesDone();
  if (is_reading()) context.TryCancel();  // Else the coordinator's own status would be lost.
  reader.join();
  const grpc::Status status = stream->Finish();
  MutexLock lock(mutex_);
  context_ = nullptr;
  return status;
}

std::string Agent::Impl::BlobDirPath() const {
  const std::string shared = state_.shared_blob_dir();
  if (IsSharedBlobDir(shared, state_.shared_blob_proof())) return shared;
  return options_.blob_cache_dir;
}

Status Agent::Impl::OpenExecutor() {
  const std::string blob_dir = BlobDirPath();
  if (executor_ != nullptr && blob_dir == executor_blob_dir_) return OkStatus();
  executor_.reset();
  ExecutorProcess::Options options;
  options.open = {options_.device, blob_dir};
  options.program = options_.executor_program;
  AG_LET(executor_, ExecutorProcess::Start(options, clock_));
  executor_blob_dir_ = blob_dir;
  v1::WorkItem qualify;
  qualify.mutable_qualify();
  Status qualified = OkStatus();
  const ExecutorProcess::End end = executor_->Run(
      qualify.SerializeAsString(), Nanos{60'000'000'000},
      [&](const std::string& bytes) {
        v1::ItemResult result;
        result.ParseFromString(bytes);
        qualified = Status(static_cast<StatusCode>(result.code()), result.message());
        return true;
      },
      [this] { return state_.stopped(); });
  if (!end.alive) qualified = end.status;
  if (!qualified.ok()) {
    executor_.reset();
    return Within(qualified, "qualify");
  }
  state_.SetFacts(executor_->facts());
  state_.SetHealth(v1::WorkerState::SERVING, "");
  return OkStatus();
}

void Agent::Impl::DriveExecutor() {
  while (!state_.stopped()) {
    // The coordinator's first message tells which blob folder the executor opens.
    if (!state_.connected()) {
      clock_.SleepFor(Nanos{10'000'000});
      continue;
    }
    if (const Status opened = OpenExecutor(); !opened.ok()) {
      LogWarn("device {} does not serve: {}", options_.device, ToString(opened));
      state_.SetHealth(v1::WorkerState::NOT_SERVING, Message(opened));
      for (Nanos waited{0}; waited < options_.reopen && !state_.stopped(); waited += kLookAround) {
        clock_.SleepFor(kLookAround);
      }
      continue;
    }
    const auto task = state_.WaitForTask(kLookAround);
    // A task that came meanwhile is still wanted when another executor is open.
    if (const Status alive = executor_->Look(); !alive.ok()) {
      GiveUpExecutor(alive, "without work");
    } else if (task.has_value()) {
      RunTask(*task);
    }
  }
  executor_.reset();
}

Status Agent::Impl::PrepareWeights(const AgentState::Task& task) {
  // Another host, or container, may have a folder of the same name.
  const bool is_shared =
      executor_blob_dir_ == task.blob_dir && IsSharedBlobDir(task.blob_dir, task.blob_proof);
  if (is_shared) return OkStatus();
  AG_LET(const std::vector<Digest> digests, WeightsOf(task.item.SerializeAsString()));
  if (digests.empty()) return OkStatus();
  AG_LET(BlobCache cache, BlobCache::Open(executor_blob_dir_, options_.blob_cache_bytes_max));
  return FetchWeights(digests, *channel_, cache, [this](grpc::ClientContext* call) {
    MutexLock lock(mutex_);
    fetch_ = call;
    if (call != nullptr && state_.stopped()) call->TryCancel();
  });
}

void Agent::Impl::RunTask(const AgentState::Task& task) {
  const std::string attempt = task.item.attempt();
  const LogScope scope(
      {{"attempt", attempt}, {"trace_id", ParseTrace(task.item.traceparent()).trace_id}});
  const Nanos begin = clock_.Now();
  state_.Begin(attempt);
  if (const Status prepared = PrepareWeights(task); !prepared.ok()) {
    v1::ItemResult result;
    result.set_index(-1);
    result.set_code(static_cast<int>(prepared.code()));
    result.set_message(Message(prepared));
    state_.AddResult(task, std::move(result));
    state_.End(attempt);
    return;
  }
  const double seconds =
      task.item.time_max_seconds() > 0 ? task.item.time_max_seconds() : kNoProgressSecondsDefault;
  const auto on_result = [&](const std::string& bytes) {
    v1::ItemResult result;
    if (!result.ParseFromString(bytes)) return false;
    const bool last = result.index() < 0;
    state_.AddResult(task, std::move(result));
    return last;
  };
  const ExecutorProcess::End end = executor_->Run(
      task.item.SerializeAsString(), Nanos(static_cast<int64_t>(seconds * 1e9)), on_result, [&] {
        state_.SetWaitsFor(executor_->WaitsFor());
        return !state_.StillWanted(attempt);
      });
  if (!end.alive) ReportDeath(task, end);
  const auto* kind = v1::WorkItem::descriptor()->FindFieldByNumber(task.item.item_case());
  LogInfo("{}: {}, {:.2f} s", attempt, kind == nullptr ? "nothing" : kind->name(),
          std::chrono::duration<double>(clock_.Now() - begin).count());
  state_.End(attempt);
}

void Agent::Impl::ReportDeath(const AgentState::Task& task, const ExecutorProcess::End& end) {
  if (end.status.code() == StatusCode::kCancelled) {  // The rest is no longer wanted.
    executor_.reset();
    return;
  }
  GiveUpExecutor(end.status, fmt::format("at entry {} of {}", end.index, task.item.attempt()));
  v1::ItemResult result;
  result.set_index(end.index);
  result.set_code(static_cast<int>(end.status.code()));
  result.set_message(Message(end.status));
  result.set_executor_died(true);
  state_.AddResult(task, std::move(result));
}

void Agent::Impl::GiveUpExecutor(const Status& why, std::string_view when) {
  executor_.reset();
  state_.CountRestart();
  state_.SetHealth(v1::WorkerState::NOT_SERVING, Message(why));
  LogWarn("{} {}", Message(why), when);
}

Agent::Agent(std::shared_ptr<grpc::Channel> channel, AgentOptions options, Clock& clock)
    : impl_(std::make_unique<Impl>(std::move(channel), std::move(options), clock)) {}
Agent::~Agent() = default;
void Agent::Stop(bool drain) { impl_->Stop(drain); }
Status Agent::health() const { return impl_->health(); }

}  // namespace ag
