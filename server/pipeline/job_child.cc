#include "server/pipeline/job_child.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <new>

#include "base/frames.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/process.h"
#include "base/thread.h"
#include "rules/sets/built_in_rules.h"
#include "server/pipeline/job_frames.h"
#include "server/workers/worker_wire.h"

namespace ag {
namespace {

constexpr Nanos kChildLook = std::chrono::milliseconds(20);
constexpr int kUntold = 2;  // The exit code when the coordinator cannot be told.

// The coordinator as the process sees it. One thread asks; another one receives, since the job may
// be cancelled while it computes.
class Coordinator {
 public:
  explicit Coordinator(int socket) : socket_(socket) {}

  Status StartReceiving() {
    AG_LET(std::thread receiver, StartThread([this] { Receive(); }));
    receiver.detach();
    return OkStatus();
  }
  bool cancelled() const { return cancelled_ || stopping_; }
  bool stopping() const { return stopping_; }
  int best_asked() const { return best_asked_; }

  // Nobody is left to work for when the coordinator is gone.
  void Tell(uint32_t type, std::string_view payload) {
    if (!SendFrame(socket_, type, payload).ok()) ::_exit(kUntold);
  }
  std::string Ask(uint32_t type, std::string_view payload) {
    Tell(type, payload);
    return Next(nullptr).payload;
  }
  // Waits for the next frame; calls `look` (may be null) now and then meanwhile.
  Frame Next(const std::function<void()>& look) {
    MutexLock lock(mutex_);
    while (frames_.empty()) {
      changed_.WaitFor(mutex_, kChildLook);
      if (!look || !frames_.empty()) continue;
      mutex_.Unlock();
      look();
      mutex_.Lock();
    }
    Frame frame = std::move(frames_.front());
    frames_.pop_front();
    return frame;
  }

 private:
  void Receive() {
    while (true) {
      auto frame = ReceiveFrame(socket_);
      if (!frame.ok()) ::_exit(kUntold);
      if (frame->type == kJobFlags) {
        const auto flags = DecodeFields<JobFlags>(frame->payload);
        if (!flags.ok()) ::_exit(kUntold);
        cancelled_ = flags->cancelled;
        stopping_ = flags->stopping;
        best_asked_ = static_cast<int>(flags->best_asked);
        continue;
      }
      MutexLock lock(mutex_);
      frames_.push_back(*std::move(frame));
      changed_.NotifyAll();
    }
  }

  const int socket_;
  std::atomic<bool> cancelled_ = false, stopping_ = false;
  std::atomic<int> best_asked_ = 0;
  Mutex mutex_;
  CondVar changed_;
  std::deque<Frame> frames_ AG_GUARDED_BY(mutex_);
};

StatusOr<Delivery> DeliveryOf(const std::string& payload) {
  AG_LET(const auto frame, DecodeFields<JobDelivery>(payload));
  AG_LET(const auto result, ParseMessage<v1::ItemResult>(frame.result));
  Delivery delivery;
  delivery.entry = frame.entry;
  delivery.result = EntryResultOf(result);
  delivery.quarantined = frame.quarantined;
  delivery.worker_id = frame.worker_id;
  return delivery;
}

class AskedWorkers : public WorkRunner {
 public:
  explicit AskedWorkers(Coordinator& coordinator) : coordinator_(coordinator) {}

  // The coordinator itself says what the item waits for.
  Status Run(ItemRequest request, const std::function<void(const Delivery&)>& on_result,
             const std::function<bool()>& cancelled) override {
    JobWork work;
    work.device = std::move(request.device);
    work.environment = std::move(request.environment);
    work.outputs = std::move(request.outputs);
    work.item = request.work->SerializeAsString();
    const std::string payload = EncodeFields(work);
    if (payload.size() > kJobFrameBytesMax) {
      return Err(StatusCode::kResourceExhausted,
                 "a piece of work for the device has {} bytes, at most {} are sent", payload.size(),
                 kJobFrameBytesMax);
    }
    coordinator_.Tell(kJobWork, payload);
    bool stopped = false;
    const auto look = [&] {
      if (stopped || !cancelled || !cancelled()) return;
      stopped = true;
      coordinator_.Tell(kJobStopWork, "");
    };
    while (true) {
      const Frame frame = coordinator_.Next(look);
      if (frame.type == kJobReply) return DecodeStatus(frame.payload);
      AG_LET(const Delivery delivery, DeliveryOf(frame.payload));
      on_result(delivery);
      coordinator_.Tell(kJobKept, "");
    }
  }

 private:
  Coordinator& coordinator_;
};

class AskedCache : public GroupCache {
 public:
  explicit AskedCache(Coordinator& coordinator) : coordinator_(coordinator) {}

  std::optional<CacheRow> Find(const Digest& key, std::string_view problem,
                               const Environment& environment) override {
    const std::string payload = EncodeFields(JobFind{key, std::string(problem), environment});
    if (payload.size() > kJobFrameBytesMax)
      return std::nullopt;  // It was never sent, so never stored.
    const auto answer = DecodeFields<JobCacheRow>(coordinator_.Ask(kJobFind, payload));
    if (!answer.ok()) LogWarn("cache: {}", Message(answer.status()));
    if (!answer.ok() || !answer->found) return std::nullopt;
    CacheRow row = answer->row;
    row.status = DecodeStatus(answer->status);
    return row;
  }
  Status Put(const CacheRow& row) override {
    return DecodeStatus(
        coordinator_.Ask(kJobPut, EncodeFields(JobCacheRow{true, EncodeStatus(row.status), row})));
  }
  Status Count(int64_t hits, int64_t misses, const std::vector<Digest>& keys) override {
    return DecodeStatus(coordinator_.Ask(kJobCount, EncodeFields(JobCount{hits, misses, keys})));
  }
  Status SetChecked(const Digest& key) override {
    ByteWriter out;
    out.AddDigest(key);
    return DecodeStatus(coordinator_.Ask(kJobSetChecked, out.bytes()));
  }
  std::optional<RegionRow> FindRegion(const std::string& depends_on, int64_t copies) override {
    auto answer = DecodeFields<JobRegion>(
        coordinator_.Ask(kJobFindRegion, EncodeFields(JobFindRegion{depends_on, copies})));
    if (!answer.ok()) LogWarn("cache: {}", Message(answer.status()));
    if (!answer.ok() || !answer->found) return std::nullopt;
    return std::move(answer->row);
  }
  Status PutRegion(const RegionRow& row) override {
    return DecodeStatus(coordinator_.Ask(kJobPutRegion, EncodeFields(JobRegion{true, row})));
  }

 private:
  Coordinator& coordinator_;
};

JobControl ControlOf(Coordinator& coordinator) {
  JobControl control;
  control.enter = [&](v1::Job::State state) {
    ByteWriter out;
    out.U32(static_cast<uint32_t>(state));
    return DecodeStatus(coordinator.Ask(kJobEnter, out.bytes()));
  };
  control.on_progress = [&](const v1::Progress& progress) {
    coordinator.Tell(kJobProgress, progress.SerializeAsString());
  };
  control.on_wait = [&](const std::string& what) { coordinator.Tell(kJobWaits, what); };
  control.cancelled = [&] { return coordinator.cancelled(); };
  control.stopping = [&] { return coordinator.stopping(); };
  control.best_asked = [&] { return coordinator.best_asked(); };
  control.on_best = [&](const StatusOr<JobOutcome>& best) {
    coordinator.Tell(kJobBest, EncodeFields(ToEnd(best)));
  };
  return control;
}

int socket_of_last_words = -1;

// Says why the process ends, without memory of its own: a frame without payload is its type and a
// length of zero.
[[noreturn]] void EndWithoutMemory() {
  constexpr std::array<uint8_t, 12> kFrame = {kJobNoMemory};
  (void)::send(socket_of_last_words, kFrame.data(), kFrame.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  ::_exit(kUntold);
}

Status LimitMemory([[maybe_unused]] uint64_t bytes) {
// Sanitizers reserve terabytes.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  std::set_new_handler(&EndWithoutMemory);
  rlimit limit{};
  // Private memory that is written; the weights of a model are mapped from files and do not count.
  if (::getrlimit(RLIMIT_DATA, &limit) != 0) return FromErrno(errno, "limit of memory");
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, bytes);
  if (::setrlimit(RLIMIT_DATA, &limit) != 0) return FromErrno(errno, "limit of memory");
#endif
  // The kernel takes this process before the coordinator when the machine has no memory left. Where
  // it may not be asked to, the limit alone counts.
  const Fd score(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  if (score && ::write(score.get(), "1000", 4) != 4) LogInfo("oom_score_adj is not written");
  return OkStatus();
}

StatusOr<JobOutcome> RunPipeline(const JobStart& start, Coordinator& coordinator) {
  AG_TRY(LimitMemory(start.memory_bytes));
  Job job;
  job.id = start.id;
  AG_LET(job.request, ParseMessage<v1::OptimizeRequest>(start.request));
  AG_LET(auto blobs, BlobDir::Open(start.options.blob_root, start.blobs_below));
  AskedWorkers workers(coordinator);
  AskedCache cache(coordinator);
  AG_LET(const RuleSet rules, BuiltInRulesAnd(start.options.more_rules));
  Pipeline pipeline(workers, cache, std::move(blobs), rules, RealClock(), start.options);
  return pipeline.Run(job, start.offer, ControlOf(coordinator));
}

int RunJob(int socket) {
  socket_of_last_words = socket;
  const auto frame = ReceiveFrame(socket);
  if (!frame.ok() || frame->type != kJobStart) return kUntold;
  const auto start = DecodeFields<JobStart>(frame->payload);
  if (!start.ok()) return kUntold;
  LogOptions log = ChildLogOptions(start->log_level);
  log.fields = {{"job", fmt::format("jobs/{}", start->id)}, {"trace_id", start->trace_id}};
  InitLog("autograph-job", std::move(log));
  static Coordinator coordinator(socket);  // Its thread never ends.
  const Status receives = coordinator.StartReceiving();
  const StatusOr<JobOutcome> outcome =
      receives.ok() ? RunPipeline(*start, coordinator) : StatusOr<JobOutcome>(receives);
  coordinator.Tell(kJobEnd, EncodeFields(ToEnd(outcome)));
  ::_exit(0);  // Other threads may run: nothing is to be destroyed under them.
}

}  // namespace

void RegisterJobRole() { RegisterChildRole("job", &RunJob); }

}  // namespace ag
