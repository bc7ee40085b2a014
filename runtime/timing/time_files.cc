#include "runtime/timing/time_files.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "device/api/device_name.h"
#include "device/profile/profile.h"
#include "runtime/timing/timer_process.h"

namespace ag {
namespace {

using internal::TimerProcess;
using internal::Waiting;
using Json = nlohmann::ordered_json;

// A place in a block holds about this much work, so that a short model's time is not that of one
// run between two others.
constexpr double kPlaceNs = 20e6;
constexpr int kRunsMax = 64;

// A shorter model stands in a block twice, and has one run that is not counted at each place: it
// brings the model's data back into the caches that others used meanwhile.
constexpr double kLongRunNs = 50e6;

// The interval of fewer ratios would claim 99 % and hold less: all of 9 lie on one side of their
// median in 0.4 % of cases.
constexpr int kBlocksMin = 9;

// Blocks beside others are repeated so often.
constexpr int kRepeatsMax = kBlocksMin;

constexpr Nanos kCompareTimeMax{600'000'000'000};

bool IsSimulated(const std::string& device) {
  const StatusOr<DeviceName> name = ParseDeviceName(device);
  return name.ok() && name->kind == DeviceName::Kind::kSim;
}

class Contest {
 public:
  explicit Contest(const TimeFilesRequest& request)
      : request_(request), processes_(request.files.size()), places_(request.files.size()) {
    times_.runners.resize(request.files.size());
  }

  StatusOr<FileTimes> Run() {
    AG_TRY(FirstRuns());
    WatchOthers();
    const Nanos begin = RealClock().Now();
    const Nanos sampling(static_cast<int64_t>(request_.seconds * 1e9));
    const bool any = std::ranges::any_of(times_.runners, [](auto& r) { return r.status.ok(); });
    while (any && Blocks() < request_.blocks_max) {
      AG_TRY(IsTimeForTheLeast());
      quiet_.Wait(request_.until);
      const Nanos block_began = RealClock().Now();
      AG_TRY(OneBlock());
      blocks_took_ += RealClock().Now() - block_began;
      ++blocks_run_;
      KeepBlock();
      const Nanos now = RealClock().Now();
      const bool is_over = now - begin >= sampling || now >= request_.until;
      if (is_over && Blocks() >= kBlocksMin) break;
    }
    return std::move(times_);
  }

 private:
  int Blocks() const { return static_cast<int>(times_.blocks.size()); }

  // Returns when so many further blocks will be done, as the ones before went.
  Nanos DoneBy(int blocks) const {
    return RealClock().Now() + std::max(blocks, 0) * blocks_took_ / std::max(blocks_run_, 1);
  }

  // Fewer blocks than kBlocksMin are worth nothing: those that would be late are not begun.
  Status IsTimeForTheLeast() const {
    if (request_.until == Nanos::max() || Blocks() >= kBlocksMin) return OkStatus();
    using Request = TimeFilesRequest;
    const std::chrono::duration<double> given = request_.until - began_;
    const std::chrono::duration<double> late = DoneBy(kBlocksMin - Blocks()) - request_.until;
    if (late <= Request::kLateMax || late <= given * Request::kLateShare) return OkStatus();
    return Err(StatusCode::kDeadlineExceeded, "timing the files would take {:.1f} s, not {:.1f} s",
               (given + late).count(), given.count());
  }

  Waiting Answer() const { return {request_.answer_max, &request_.stop, &request_.on_progress}; }

  void Start(size_t f) {
    StatusOr<TimerProcess> started = TimerProcess::Start(request_, request_.files[f]);
    times_.runners[f].status = started.status();
    if (started.ok()) processes_[f] = *std::move(started);
  }

  Status Load(size_t f) {
    if (!processes_[f]) return OkStatus();
    StatusOr<FileRunner> ready = processes_[f]->Ready(Answer());
    if (!ready.ok()) return Take(f, ready.status());
    times_.runners[f] = *std::move(ready);
    return OkStatus();
  }

  Status FirstRuns() {
    // Our sessions one after the other: what loading needs beyond the session is then needed once.
    // ONNX Runtime loads meanwhile.
    const auto is_elsewhere = [&](size_t f) {
      return request_.files[f].runtime == FileRuntime::kOnnxRuntime;
    };
    for (size_t f = 0; f < processes_.size(); ++f) {
      if (is_elsewhere(f)) Start(f);
    }
    for (size_t f = 0; f < processes_.size(); ++f) {
      if (is_elsewhere(f)) continue;
      Start(f);
      AG_TRY(Load(f));
    }
    for (size_t f = 0; f < processes_.size(); ++f) {
      if (is_elsewhere(f)) AG_TRY(Load(f));
    }
    // Nothing runs while another one loads: two that run beside each other take several times as
    // long. A place's first value brings one run before the one that is timed.
    for (size_t f = 0; f < processes_.size(); ++f) {
      if (!times_.runners[f].status.ok()) continue;
      const std::optional<size_t> twin = FailedTwin(f);
      if (twin) {
        AG_TRY(Take(f, times_.runners[*twin].status));
        continue;
      }
      const StatusOr<double> ns = processes_[f]->Run(places_[f], Answer());
      AG_TRY(Take(f, ns.status()));
      if (!ns.ok()) continue;
      places_[f] = {.runs = std::clamp(static_cast<int>(kPlaceNs / *ns), 1, kRunsMax),
                    .warm = *ns < kLongRunNs};
    }
    return OkStatus();
  }

  // Returns an earlier process that runs the same and failed: a second one would fail as late.
  std::optional<size_t> FailedTwin(size_t f) const {
    const FileToTime& file = request_.files[f];
    for (size_t i = 0; i < f; ++i) {
      if (request_.files[i] == file && !times_.runners[i].status.ok()) return i;
    }
    return std::nullopt;
  }

  // The files in one order and then in the other. A long model runs in one half alone, which
  // changes from block to block.
  Status OneBlock() {
    const size_t n = processes_.size();
    const bool is_odd = times_.blocks.size() % 2 == 1;
    std::vector<double>& block = times_.blocks.emplace_back(2 * n, 0.0);
    for (size_t place = 0; place < 2 * n; ++place) {
      const size_t f = place < n ? place : 2 * n - 1 - place;
      if (!times_.runners[f].status.ok()) continue;
      const bool is_long = !places_[f].warm;
      if (is_long && (place >= n) != is_odd) continue;
      const StatusOr<double> ns = processes_[f]->Run(places_[f], Answer());
      AG_TRY(Take(f, ns.status()));
      if (ns.ok()) block[place] = *ns;
    }
    return OkStatus();
  }

  // The meter's readings begin here: what processes needed for loading is over.
  void WatchOthers() {
    for (const auto& process : processes_) {
      if (process) helpers_.push_back(process->pid());
    }
    load_.BusyCores();
  }

  ProcessorTimes Read() const {
    if (request_.read_times) return request_.read_times(helpers_);
    if (IsSimulated(request_.device)) return {.at = RealClock().Now()};
    return ReadProcessorTimes(helpers_);
  }

  // Drops the last block when others were in its way, a few times.
  void KeepBlock() {
    if (load_.BusyCores() <= kForeignCoresMax) return;
    const bool is_time = DoneBy(kBlocksMin - Blocks() + 1) <= request_.until;
    if (is_time && repeats_++ < kRepeatsMax) {
      times_.blocks.pop_back();
    } else {
      ++times_.disturbed;
    }
  }

  // Ends the file's process when it failed; an error only when nothing more is wanted.
  Status Take(size_t f, const Status& status) {
    if (status.ok()) return status;
    times_.runners[f].status = status;
    processes_[f].reset();
    return status.code() == StatusCode::kCancelled ? status : OkStatus();
  }

  const TimeFilesRequest& request_;
  std::vector<std::optional<TimerProcess>> processes_;
  std::vector<internal::Place> places_;  // By file.
  std::vector<pid_t> helpers_;           // The processes.
  ProcessorMonitor load_{[this] { return Read(); }, RealClock()};
  QuietWait quiet_{load_, RealClock()};
  const Nanos began_ = RealClock().Now();
  Nanos blocks_took_{0};  // Without the waits between them.
  int blocks_run_ = 0;    // Repeated ones as well.
  int repeats_ = 0;
  FileTimes times_;
};

}  // namespace

StatusOr<FileTimes> TimeFiles(const TimeFilesRequest& request) {
  if (request.files.empty()) return Err(StatusCode::kInvalidArgument, "no files to time");
  std::optional<FileLock> alone;
  if (!IsSimulated(request.device)) {
    const auto on_wait = [&](pid_t holder) {
      if (request.on_progress) request.on_progress();
      if (request.on_wait) request.on_wait(holder);
    };
    AG_LET(alone, MeasureAlone(LockWait{on_wait, request.stop}));
  }
  return Contest(request).Run();
}

StatusOr<std::string> FindOnnxRuntime(Nanos time_max) {
  AG_LET(ChildProcess child, internal::SpawnOrtTimer("{}"));
  std::string rest;
  AG_LET(const std::string line,
         internal::ReadLine(child, "ONNX Runtime", &rest, {.time_max = time_max}));
  AG_LET(const FileRunner runner, internal::ParseReady(line, "ONNX Runtime"));
  return runner.version;
}

Status CheckChosenPython() {
  const char* const chosen = std::getenv("AUTOGRAPH_PYTHON");
  const bool is_chosen = chosen != nullptr && *chosen != 0;
  return is_chosen ? internal::FindPython().status() : OkStatus();
}

StatusOr<std::vector<OutputError>> CompareInOnnxRuntime(const CompareFilesRequest& request) {
  AG_LET(const internal::OrtFile reference, internal::OrtFile::Of(request.reference));
  AG_LET(const internal::OrtFile file, internal::OrtFile::Of(request.file));
  const Json asked = {{"compare", {reference.path(), file.path()}},
                      {"shapes", internal::ShapesJson(request.shapes)},
                      {"inputs", request.inputs},
                      {"seeds", request.seeds}};
  AG_LET(ChildProcess child, internal::SpawnOrtTimer(asked.dump()));
  std::string rest;
  AG_LET(const std::string line,
         internal::ReadLine(child, "ONNX Runtime", &rest,
                            {kCompareTimeMax, nullptr, &request.on_progress}));
  const Json list = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!list.is_array()) return internal::ParseReady(line, "ONNX Runtime").status();
  std::vector<OutputError> errors;
  for (const Json& entry : list) {
    errors.push_back({entry.value("output", ""), entry.value("max_abs", 0.0),
                      entry.value("max_rel", 0.0), entry.value("max_elementwise", 0.0),
                      entry.value("nonfinite_differs", true)});
  }
  return errors;
}

}  // namespace ag
