#include "server/pipeline/job_process.h"

#include <poll.h>

#include <algorithm>

#include "base/frames.h"
#include "base/log.h"
#include "base/process.h"
#include "base/trace.h"
#include "server/pipeline/job_frames.h"
#include "server/workers/worker_wire.h"

namespace ag {
namespace {

constexpr Nanos kProcessLook = std::chrono::milliseconds(50);

double InSeconds(Nanos duration) { return std::chrono::duration<double>(duration).count(); }

// Whether bytes, or the end, come within the time.
bool HasInput(int socket, Nanos timeout) {
  pollfd entry{socket, POLLIN, 0};
  const auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(timeout).count();
  return ::poll(&entry, 1, static_cast<int>(millis)) > 0;
}

// One job and its process. One thread.
class Session {
 public:
  struct Parts {
    Dispatcher& dispatcher;
    GroupCache& cache;
    Clock& clock;
    const JobProcessOptions& options;
    const Job& job;
    const JobControl& control;
  };
  Session(Parts parts, ChildProcess child)
      : parts_(parts),
        child_(std::move(child)),
        began_(parts_.clock.Now()),
        mark_(parts_.clock.Now()) {}

  StatusOr<JobOutcome> Run(const JobStart& start) {
    AG_TRY(Send(kJobStart, EncodeFields(start)));
    std::optional<JobOutcome> outcome;
    const Status served = Serve(kJobEnd, &outcome);
    if (!served.ok()) child_.Kill();
    const Status ended = child_.Wait();
    if (is_gone_) {
      return Err(StatusCode::kInternal, "the job's process crashed: {}", Message(ended));
    }
    AG_TRY(served);
    lost_workers_ = outcome->result.stop_reason() == v1::Result::UNAVAILABLE;
    return *std::move(outcome);
  }
  // Whether the job ended because workers, or the measuring lock, were not to be had.
  bool lost_workers() const { return lost_workers_; }

 private:
  Status Send(uint32_t type, std::string_view payload) {
    return Noted(SendFrame(child_.socket(), type, payload));
  }
  StatusOr<Frame> Receive() {
    auto frame = ReceiveFrame(child_.socket(), {.payload_bytes_max = kJobFrameBytesMax});
    AG_TRY(Noted(frame.status()));
    return frame;
  }
  // Of the exchange, where kUnavailable says that the process is gone; what it says of its job may
  // have the same code.
  Status Noted(Status status) {
    is_gone_ = is_gone_ || status.code() == StatusCode::kUnavailable;
    return status;
  }

  // What the process has computed.
  Nanos Computed() const { return computed_ + (at_rest_ ? Nanos{0} : parts_.clock.Now() - mark_); }
  void Rest() {
    computed_ = Computed();
    at_rest_ = true;
  }
  void GoOn() {
    computed_ = Computed();
    at_rest_ = false;
    mark_ = parts_.clock.Now();
  }

  // Tells the process what it must know, and returns why it must end.
  Status Look() {
    const JobControl& control = parts_.control;
    const int best_asked = control.best_asked ? control.best_asked() : 0;
    const JobFlags flags = {control.cancelled(), control.stopping(),
                            static_cast<uint32_t>(best_asked)};
    if (flags != flags_) {
      if (!flags_.cancelled) computed_at_cancel_ = Computed();
      flags_ = flags;
      AG_TRY(Send(kJobFlags, EncodeFields(flags)));
    }
    const JobProcessOptions& options = parts_.options;
    if (flags_.cancelled) {
      const bool keeps = !flags_.stopping && (best_speedup_ > 1 || confirming_);
      if (Computed() - computed_at_cancel_ <= (keeps ? options.keep_max : options.cancel_max)) {
        return OkStatus();
      }
      return Err(StatusCode::kCancelled, "cancelled");
    }
    const double budget = parts_.job.request.budget().time_seconds();
    if (!waits_for_.empty() &&
        InSeconds(parts_.clock.Now() - began_) > budget + InSeconds(options.wait_overrun_max)) {
      lost_workers_ = true;
      return Err(StatusCode::kDeadlineExceeded,
                 "waited for {} until the budget of {:.1f} s was over: try again when it "
                 "is free, or with a larger budget",
                 waits_for_, budget);
    }
    const Nanos end = began_ + Nanos(static_cast<int64_t>(1e9 * budget)) + options.overrun_max;
    const Nanos now = parts_.clock.Now();
    if (waits_for_.empty() && at_worker_ && now > std::max(end, hears_until_)) {
      lost_workers_ = true;
      return Err(
          StatusCode::kDeadlineExceeded,
          "a worker has had the job's work without a result until the budget of {:.1f} s and "
          "{:.1f} s were over",
          budget, InSeconds(options.overrun_max));
    }
    if (InSeconds(Computed()) <= budget + InSeconds(options.overrun_max)) return OkStatus();
    return Err(StatusCode::kDeadlineExceeded,
               "the job's process has computed for {:.1f} s, more than the budget of {:.1f} s and "
               "{:.1f} s: the model is too large for this budget",
               InSeconds(Computed()), budget, InSeconds(options.overrun_max));
  }

  // Answers until the frame `last` has come; of kJobEnd the outcome is read.
  Status Serve(uint32_t last, std::optional<JobOutcome>* outcome) {
    while (true) {
      AG_TRY(Look());
      if (!HasInput(child_.socket(), kProcessLook)) continue;
      AG_LET(const Frame frame, Receive());
      if (frame.type == kJobEnd && outcome != nullptr) return TakeEnd(frame.payload, outcome);
      if (frame.type == last) return OkStatus();
      AG_TRY(Answer(frame));
    }
  }

  Status TakeEnd(const std::string& payload, std::optional<JobOutcome>* outcome) {
    AG_LET(const auto end, DecodeFields<JobEnd>(payload));
    AG_LET(*outcome, OutcomeOf(end));
    return OkStatus();
  }

  Status TakeBest(const std::string& payload) {
    AG_LET(const auto end, DecodeFields<JobEnd>(payload));
    if (parts_.control.on_best) parts_.control.on_best(OutcomeOf(end));
    return OkStatus();
  }

  void NoteWait(const std::string& what) {
    waits_for_ = what;
    NoteHeard();
    parts_.control.on_wait(what);
  }

  void NoteHeard() { hears_until_ = parts_.clock.Now() + quiet_time_ + parts_.options.overrun_max; }

  Status Reply(const Status& status) { return Send(kJobReply, EncodeStatus(status)); }

  Status Answer(const Frame& frame) {
    switch (frame.type) {
      case kJobEnter:
        return Enter(frame.payload);
      case kJobProgress:
        return TakeProgress(frame.payload);
      case kJobWaits:
        frame.payload.empty() ? GoOn() : Rest();
        NoteWait(frame.payload);
        return OkStatus();
      case kJobWork:
        return Work(frame.payload);
      case kJobBest:
        return TakeBest(frame.payload);
      case kJobStopWork:  // Of work that has just ended, or of the one in hand.
        stop_work_ = true;
        return OkStatus();
      case kJobNoMemory:
        return Err(StatusCode::kResourceExhausted,
                   "the job's process reached its memory limit of {} MiB",
                   parts_.options.memory_bytes_max >> 20);
      default:
        return AnswerOfCache(frame);
    }
  }

  Status AnswerOfCache(const Frame& frame) {
    ByteReader in(frame.payload);
    switch (frame.type) {
      case kJobFind: {
        AG_LET(const auto find, DecodeFields<JobFind>(in));
        JobCacheRow answer;
        if (auto row = parts_.cache.Find(find.key, find.problem, find.environment)) {
          answer = {true, EncodeStatus(row->status), *std::move(row)};
        }
        return Send(kJobReply, EncodeFields(answer));
      }
      case kJobPut: {
        AG_LET(auto put, DecodeFields<JobCacheRow>(in));
        put.row.status = DecodeStatus(put.status);
        return Reply(parts_.cache.Put(put.row));
      }
      case kJobCount: {
        AG_LET(const auto count, DecodeFields<JobCount>(in));
        return Reply(parts_.cache.Count(count.hits, count.misses, count.keys));
      }
      case kJobSetChecked: {
        AG_LET(const Digest key, in.ReadDigest());
        return Reply(parts_.cache.SetChecked(key));
      }
      case kJobFindRegion: {
        AG_LET(const auto find, DecodeFields<JobFindRegion>(in));
        JobRegion answer;
        if (auto row = parts_.cache.FindRegion(find.depends_on, find.copies)) {
          answer = {true, *std::move(row)};
        }
        return Send(kJobReply, EncodeFields(answer));
      }
      case kJobPutRegion: {
        AG_LET(const auto put, DecodeFields<JobRegion>(in));
        return Reply(parts_.cache.PutRegion(put.row));
      }
      default:
        return Err(StatusCode::kInternal, "the job's process sent a frame of type {}", frame.type);
    }
  }

  Status Enter(const std::string& payload) {
    AG_LET(const uint32_t number, ByteReader(payload).U32());
    const auto state = static_cast<v1::Job::State>(number);
    const Status entered = parts_.control.enter(state);
    confirming_ = state == v1::Job::CONFIRMING;
    return Reply(entered);
  }

  Status TakeProgress(const std::string& payload) {
    AG_LET(const auto progress, ParseMessage<v1::Progress>(payload));
    best_speedup_ = progress.best_speedup();
    parts_.control.on_progress(progress);
    return OkStatus();
  }

  // Hands the item to the workers, and what they deliver to the process.
  Status Work(const std::string& payload) {
    AG_LET(auto work, DecodeFields<JobWork>(payload));
    AG_LET(auto item, ParseMessage<v1::WorkItem>(work.item));
    work.item = std::string();
    item.set_traceparent(NextSpan(ParseTrace(parts_.job.request.traceparent())).ToString());
    stop_work_ = false;
    at_worker_ = true;
    quiet_time_ = QuietTime(item);
    NoteHeard();
    Rest();
    Status broken;  // Of the exchange with the process.
    const auto deliver = [&](const Delivery& delivery) {
      if (broken.ok()) broken = Deliver(delivery);
    };
    const auto stop = [&] {
      if (broken.ok()) broken = Look();
      while (broken.ok() && !stop_work_ && HasInput(child_.socket(), Nanos{0})) {
        auto frame = Receive();
        broken = frame.ok() ? Answer(*frame) : frame.status();
      }
      return !broken.ok() || stop_work_;
    };
    const Status ran = parts_.dispatcher.Run(
        {std::move(work.device), std::move(work.environment),
         std::make_shared<const v1::WorkItem>(std::move(item)), std::move(work.outputs),
         [this](const std::string& what) { NoteWait(what); }, parts_.control.on_device_time},
        deliver, stop);
    GoOn();
    at_worker_ = false;
    AG_TRY(broken);
    return Reply(ran);
  }

  // Returns when the process has stored what it wants to keep.
  Status Deliver(const Delivery& delivery) {
    v1::ItemResult result;
    ToProto(delivery.result, &result);
    const JobDelivery frame = {delivery.entry, result.SerializeAsString(), delivery.quarantined,
                               delivery.worker_id};
    NoteHeard();
    AG_TRY(Send(kJobDelivery, EncodeFields(frame)));
    return Serve(kJobKept, nullptr);
  }

  const Parts parts_;
  ChildProcess child_;
  JobFlags flags_;
  const Nanos began_;
  Nanos computed_{0}, mark_{0}, computed_at_cancel_{0};
  std::string waits_for_;  // The measuring lock, here or at the worker in hand; empty: nothing.
  Nanos quiet_time_{0}, hears_until_{0};  // Of the work in hand.
  bool is_gone_ = false;
  bool at_rest_ = false;    // It measures, or waits for the measuring lock.
  bool at_worker_ = false;  // Its work is, or waits for one.
  bool lost_workers_ = false;
  bool confirming_ = false;
  bool stop_work_ = false;
  double best_speedup_ = 1;
};

}  // namespace

JobProcesses::JobProcesses(Dispatcher& dispatcher, GroupCache& cache, Clock& clock,
                           JobProcessOptions options)
    : dispatcher_(dispatcher), cache_(cache), clock_(clock), options_(std::move(options)) {}

// A resumed job may stand here before its worker has come back.
StatusOr<std::vector<DeviceOffer>> JobProcesses::WaitForOffers(const std::string& device,
                                                               const JobControl& control) {
  const Nanos begin = clock_.Now();
  while (true) {
    auto offers = dispatcher_.FindOffers(device);
    if (offers.ok()) return SettledOffers(*std::move(offers));
    if (offers.status().code() != StatusCode::kUnavailable) return offers;
    control.on_wait(fmt::format("a worker of device {}", device));
    if (control.cancelled()) return Err(StatusCode::kCancelled, "cancelled");
    if (clock_.Now() - begin > options_.offer_wait_max) return offers;
    clock_.SleepFor(std::chrono::milliseconds(50));
  }
}

DeviceOffer JobProcesses::TakePlace(const v1::OptimizeRequest& request,
                                    const std::vector<DeviceOffer>& offers,
                                    const std::set<Environment>& failed) {
  MutexLock lock(mutex_);
  const auto load = [&](const DeviceOffer& offer) AG_REQUIRES(mutex_) {
    return std::tuple(failed.contains(offer.environment), !OnnxRuntimeFor(request, offer).ok(),
                      running_[{offer.device, offer.environment}]);
  };
  const DeviceOffer* best = &offers[0];
  for (const DeviceOffer& offer : offers) {
    if (load(offer) < load(*best)) best = &offer;
  }
  ++running_[{best->device, best->environment}];
  return *best;
}

void JobProcesses::GivePlace(const DeviceOffer& offer) {
  MutexLock lock(mutex_);
  const auto place = running_.find({offer.device, offer.environment});
  if (--place->second == 0) running_.erase(place);
}

bool JobProcesses::CanRunElsewhere(const DeviceOffer& offer, std::set<Environment>& failed) {
  const auto found = dispatcher_.FindOffers(offer.device);
  if (!found.ok()) return false;
  bool another = false;
  for (const DeviceOffer& now : SettledOffers(*found)) {
    if (now.environment == offer.environment) failed.insert(offer.environment);
    another |= now.environment != offer.environment && !failed.contains(now.environment);
  }
  return another;
}

StatusOr<JobOutcome> JobProcesses::Run(const Job& job, const JobControl& control) {
  std::set<Environment> failed;
  while (true) {
    AG_LET(const auto offers, WaitForOffers(job.request.device(), control));
    const DeviceOffer offer = TakePlace(job.request, offers, failed);
    Ran ran = RunAt(offer, job, control);
    GivePlace(offer);
    if (!ran.lost_workers || control.cancelled() || !CanRunElsewhere(offer, failed)) {
      return std::move(ran.outcome);
    }
    LogWarn("{}: no worker of its environment serves it; it is planned anew for another one: {}",
            job.name(), ran.outcome.ok() ? "they were lost" : Message(ran.outcome.status()));
  }
}

JobProcesses::Ran JobProcesses::RunAt(const DeviceOffer& offer, const Job& job,
                                      const JobControl& control) {
  JobStart start;
  start.offer = offer;
  start.id = job.id;
  start.request = job.request.SerializeAsString();
  start.options = options_.pipeline;
  start.blobs_below = options_.blobs_below;
  start.memory_bytes = options_.memory_bytes_max;
  start.log_level = internal::LogShows(internal::LogLevel::kInfo)   ? "info"
                    : internal::LogShows(internal::LogLevel::kWarn) ? "warn"
                                                                    : "error";
  start.trace_id = TraceIdOf(job.request);
  auto child = SpawnRole("job", {}, options_.program);
  if (!child.ok()) return {child.status()};
  Session session({dispatcher_, cache_, clock_, options_, job, control}, *std::move(child));
  auto outcome = session.Run(start);
  const bool lost_workers =
      session.lost_workers() || outcome.status().code() == StatusCode::kUnavailable;
  return {std::move(outcome), lost_workers};
}

}  // namespace ag
