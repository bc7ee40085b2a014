#include "worker/executor_process.h"

#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <utility>

#include "base/file.h"
#include "base/frames.h"
#include "base/measuring_lock.h"

namespace ag {
namespace {

// A frame that has begun is complete within this time, even on a busy machine.
constexpr Nanos kFrameTimeMax{30'000'000'000};

// Returns true when a frame or the end of the stream can be read within `timeout`. Receiving itself
// gets no short timeout, because one that ends in the middle of a frame costs the connection.
bool IsReadable(int socket, Nanos timeout) {
  pollfd fd{.fd = socket, .events = POLLIN, .revents = 0};
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(timeout).count();
  return poll(&fd, 1, static_cast<int>(ms)) > 0;
}

double Seconds(Nanos duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

ExecutorProcess::ExecutorProcess(ChildProcess child, Fd page_fd, ProgressPage* page,
                                 const Options& options, Clock& clock)
    : child_(std::make_unique<ChildProcess>(std::move(child))),
      page_fd_(std::move(page_fd)),
      page_(page),
      options_(options),
      clock_(clock) {}

ExecutorProcess::~ExecutorProcess() { munmap(page_, sizeof(ProgressPage)); }

StatusOr<std::unique_ptr<ExecutorProcess>> ExecutorProcess::Start(const Options& options,
                                                                  Clock& clock) {
  Fd page_fd(memfd_create("autograph-progress", MFD_CLOEXEC));
  if (!page_fd || ftruncate(page_fd.get(), sizeof(ProgressPage)) != 0) {
    return FromErrno(errno, "make progress page");
  }
  // A thread of the OpenMP library that spins after a parallel region would disturb the next
  // group's samples; a short spin keeps the hand-over between regions fast (docs/devices.md).
  AG_LET(
      ChildProcess child,
      SpawnRole(kExecutorRole, {"GOMP_SPINCOUNT=20000", "OMP_PROC_BIND=false"}, options.program));
  void* page =
      mmap(nullptr, sizeof(ProgressPage), PROT_READ | PROT_WRITE, MAP_SHARED, page_fd.get(), 0);
  if (page == MAP_FAILED) return FromErrno(errno, "map progress page");
  std::unique_ptr<ExecutorProcess> executor(new ExecutorProcess(
      std::move(child), std::move(page_fd), static_cast<ProgressPage*>(page), options, clock));
  const int socket = executor->child_->socket();
  const Status sent =
      SendFrame(socket, kOpenFrame, EncodeFields(options.open), {executor->page_fd_.get()});
  if (!sent.ok()) return Within(executor->Died(sent).status, "open executor");
  const StatusOr<Frame> answer = ReceiveFrame(socket, {.timeout = options.open_time_max});
  if (!answer.ok()) return Within(executor->Died(answer.status()).status, "open executor");
  if (answer->type != kOpenedFrame) {
    const Status failed = DecodeStatus(answer->payload);
    return failed.ok() ? Err(StatusCode::kInternal, "open executor: it failed with OK") : failed;
  }
  AG_LET(executor->facts_, DecodeFields<DeviceFacts>(answer->payload));
  return executor;
}

std::string ExecutorProcess::WaitsFor() const {
  return MeasuringLockText(page_->lock_holder.load());
}

ExecutorProcess::End ExecutorProcess::Died(Status status) {
  End end{.alive = false, .index = page_->index.load(), .status = std::move(status)};
  if (end.status.code() != StatusCode::kUnavailable) {
    child_->Kill();
    (void)child_->Wait();
    return end;
  }
  // The socket broke first; the exit status says why. Kill a child that only closed its socket.
  Status exit = child_->WaitFor(Nanos{1'000'000'000});
  if (exit.code() == StatusCode::kDeadlineExceeded) {
    child_->Kill();
    exit = child_->Wait();
  }
  end.status = Err(StatusCode::kUnavailable, "executor died: {}",
                   exit.ok() ? "it left by itself" : Message(exit));
  return end;
}

Status ExecutorProcess::Look() {
  const Status exit = child_->WaitFor(Nanos{0});
  if (exit.code() == StatusCode::kDeadlineExceeded) return OkStatus();
  return Err(StatusCode::kUnavailable, "executor died: {}",
             exit.ok() ? "it left by itself" : Message(exit));
}

ExecutorProcess::End ExecutorProcess::Lost(const Status& status) {
  child_->Kill();
  (void)child_->Wait();
  return {.alive = false,
          .index = page_->index.load(),
          .status = Err(StatusCode::kUnavailable, "device lost: {}", Message(status))};
}

ExecutorProcess::End ExecutorProcess::Run(const std::string& item_bytes, Nanos no_progress_max,
                                          const std::function<bool(const std::string&)>& on_result,
                                          const std::function<bool()>& stop) {
  page_->index.store(-1);
  const Status sent = SendFrame(child_->socket(), kItemFrame, item_bytes);
  if (!sent.ok()) return Died(sent);
  uint64_t seen = page_->counter.load();
  Nanos last_progress = clock_.Now();
  Nanos stop_begin = Nanos::max();  // max(): it is not to stop.
  for (;;) {
    if (!stop()) {
      stop_begin = Nanos::max();
    } else if (stop_begin == Nanos::max()) {
      stop_begin = clock_.Now();
    } else if (clock_.Now() - stop_begin > options_.stop_grace) {
      return Died(Err(StatusCode::kCancelled, "stopped"));
    }
    if (IsReadable(child_->socket(), options_.poll)) {
      const StatusOr<Frame> frame = ReceiveFrame(child_->socket(), {.timeout = kFrameTimeMax});
      if (!frame.ok()) return Died(frame.status());
      last_progress = clock_.Now();
      if (frame->type == kFailedFrame) return Lost(DecodeStatus(frame->payload));
      if (on_result(frame->payload)) return {};
      continue;
    }
    if (const uint64_t counter = page_->counter.load(); counter != seen) {
      seen = counter;
      last_progress = clock_.Now();
    }
    if (clock_.Now() - last_progress > no_progress_max) {
      return Died(
          Err(StatusCode::kDeadlineExceeded, "no progress for {:.1f} s", Seconds(no_progress_max)));
    }
  }
}

}  // namespace ag
