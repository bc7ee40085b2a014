#include "worker/executor_role.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memory>

#include "base/blobs.h"
#include "base/bytes.h"
#include "base/frames.h"
#include "base/log.h"
#include "base/process.h"
#include "device/open_device.h"
#include "runtime/timing/time_files.h"
#include "worker/execute.h"
#include "worker/executor_wire.h"

namespace ag {
namespace {

constexpr Nanos kOnnxRuntimeWait{5'000'000'000};

StatusOr<ProgressPage*> MapPage(const Frame& open) {
  if (open.fds.size() != 1) {
    return Err(StatusCode::kInvalidArgument, "open: expected 1 file descriptor, got {}",
               open.fds.size());
  }
  void* page =
      mmap(nullptr, sizeof(ProgressPage), PROT_READ | PROT_WRITE, MAP_SHARED, open.fds[0].get(), 0);
  if (page == MAP_FAILED) return FromErrno(errno, "map progress page");
  return static_cast<ProgressPage*>(page);
}

StatusOr<std::unique_ptr<Executor>> Open(const Frame& frame) {
  AG_LET(const OpenRequest request, DecodeFields<OpenRequest>(frame.payload));
  AG_LET(ProgressPage* const page, MapPage(frame));
  AG_LET(std::unique_ptr<Device> device, OpenDevice(request.device));
  AG_LET(std::shared_ptr<BlobDir> blobs, BlobDir::Open(request.blob_dir));
  const auto on_progress = [page](int index) {
    page->index.store(index, std::memory_order_relaxed);
    page->counter.fetch_add(1, std::memory_order_release);
  };
  const auto on_wait = [page](pid_t holder) { page->lock_holder.store(holder); };
  // One per process, which opens one device.
  static ProcessorMonitor monitor([] { return ReadProcessorTimes(); }, RealClock());
  ProfileOptions profile;
  if (!device->simulated()) profile.interference = &monitor;
  auto executor =
      std::make_unique<Executor>(std::move(device), std::make_unique<BlobWeights>(blobs),
                                 RealClock(), profile, on_progress, on_wait);
  executor->set_files({request.device, std::move(blobs)});
  return executor;
}

DeviceFacts FactsOf(const Device& device) {
  DeviceFacts facts{FormatDeviceSpec(device.spec()), device.environment(), device.simulated(), ""};
  const StatusOr<std::string> version = FindOnnxRuntime(kOnnxRuntimeWait);
  if (version.ok()) facts.onnxruntime = *version;
  return facts;
}

// Returns OK when the agent was told why it ends, kUnavailable when the agent is gone.
Status Serve(int socket) {
  AG_LET(const Frame open, ReceiveFrame(socket));
  const StatusOr<std::unique_ptr<Executor>> executor = Open(open);
  if (!executor.ok()) return SendFrame(socket, kFailedFrame, EncodeStatus(executor.status()));
  const Device& device = (*executor)->device();
  AG_TRY(SendFrame(socket, kOpenedFrame, EncodeFields(FactsOf(device))));
  const auto emit = [socket](const std::string& result) {
    return SendFrame(socket, kResultFrame, result);
  };
  for (;;) {
    AG_LET(const Frame item, ReceiveFrame(socket));
    const Status ran = RunWorkItem(**executor, item.payload, emit);
    if (ran.ok()) continue;
    // Either the agent is gone and sending fails too, or the device is lost and the agent must
    // know.
    return SendFrame(socket, kFailedFrame, EncodeStatus(ran));
  }
}

int ExecutorMain(int socket) {
  // Makes the allocator return large blocks to the system when they are freed; by default it keeps
  // up to 32 MiB of each size that was used.
  constexpr int kLargeBytes = 1 << 20;
  mallopt(M_MMAP_THRESHOLD, kLargeBytes);
  InitLog("autograph-executor", "warn");
  const Status status = Serve(socket);
  // An executor normally ends because the agent goes away. An error that was sent is logged by the
  // agent.
  if (status.ok() || status.code() == StatusCode::kUnavailable) return 0;
  LogError("executor ends: {}", ToString(status));
  return 1;
}

}  // namespace

void RegisterExecutorRole() {
  RegisterChildRole(kExecutorRole, ExecutorMain);
  RegisterTimeFileRole();  // An executor starts it from its own program.
}

}  // namespace ag
