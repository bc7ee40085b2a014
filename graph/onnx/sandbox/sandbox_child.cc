#include "graph/onnx/sandbox/sandbox_child.h"

#include <seccomp.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <new>

#include "base/file.h"
#include "base/frames.h"
#include "base/handle.h"
#include "base/process.h"
#include "graph/onnx/import/import.h"
#include "graph/onnx/imported_model.h"
#include "graph/onnx/weight_sink.h"

namespace ag {
namespace {

struct FilterTraits {
  using Raw = scmp_filter_ctx;
  static constexpr Raw kNone = nullptr;
  static void Free(Raw filter) { seccomp_release(filter); }
};
using Filter = UniqueHandle<FilterTraits>;

// Returns the lower of `value` and the process's limit (ulimit), which may not be raised.
int64_t Lowest(__rlimit_resource resource, int64_t value) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0) return value;
  return static_cast<int64_t>(
      std::min({limit.rlim_cur, limit.rlim_max, static_cast<rlim_t>(value)}));
}

// Where the caller is limited itself, its limit on data is this process's too.
int64_t MemoryLimit(int64_t bytes) { return Lowest(RLIMIT_DATA, Lowest(RLIMIT_AS, bytes)); }

Status SetLimit(__rlimit_resource resource, int64_t value) {
  const auto lowest = static_cast<rlim_t>(Lowest(resource, value));
  const rlimit limit{lowest, lowest};
  if (::setrlimit(resource, &limit) == 0) return OkStatus();
  return FromErrno(errno, "limit of the sandbox");
}

Status SetLimits([[maybe_unused]] const SandboxRequest& limits) {
// Sanitizers reserve terabytes.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  AG_TRY(SetLimit(RLIMIT_AS, limits.memory_bytes));
#endif
  AG_TRY(SetLimit(RLIMIT_CPU, limits.cpu_seconds));
  AG_TRY(SetLimit(RLIMIT_CORE, 0));
  AG_TRY(SetLimit(RLIMIT_FSIZE, 0));
  return SetLimit(RLIMIT_NOFILE, 0);
}

int AddRules(scmp_filter_ctx filter) {
  int error = 0;
  const auto allow = [&](int call) {
    if (error == 0) error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 0);
  };
  for (const int call : {SCMP_SYS(read),           SCMP_SYS(write),        SCMP_SYS(recvmsg),
                         SCMP_SYS(sendmsg),        SCMP_SYS(shutdown),     SCMP_SYS(recvfrom),
                         SCMP_SYS(poll),           SCMP_SYS(ppoll),        SCMP_SYS(close),
                         SCMP_SYS(munmap),         SCMP_SYS(mremap),       SCMP_SYS(brk),
                         SCMP_SYS(madvise),        SCMP_SYS(futex),        SCMP_SYS(exit),
                         SCMP_SYS(exit_group),     SCMP_SYS(rt_sigreturn), SCMP_SYS(rt_sigprocmask),
                         SCMP_SYS(rt_sigaction),   SCMP_SYS(gettid),       SCMP_SYS(getpid),
                         SCMP_SYS(clock_gettime),  SCMP_SYS(getrandom),    SCMP_SYS(sched_yield),
                         SCMP_SYS(restart_syscall)}) {
    allow(call);
  }
#if defined(__SANITIZE_ADDRESS__)
  allow(SCMP_SYS(sigaltstack));  // The sanitizer's, where an exception is thrown.
#endif
  // Memory must not be executable; a signal (of abort) may go only to this process.
  const scmp_arg_cmp data_only = SCMP_A2_64(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0);
  const scmp_arg_cmp itself = SCMP_A0_64(SCMP_CMP_EQ, static_cast<scmp_datum_t>(::getpid()));
  for (const auto& [call, condition] : {std::pair{SCMP_SYS(mmap), data_only},
                                        {SCMP_SYS(mprotect), data_only},
                                        {SCMP_SYS(tgkill), itself}}) {
    if (error == 0) error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 1, condition);
  }
  return error;
}

Status InstallFilter() {
  const Filter filter(seccomp_init(SCMP_ACT_KILL_PROCESS));
  if (!filter) return Err(StatusCode::kFailedPrecondition, "sandbox: no memory for the filter");
  int error = AddRules(filter.get());
  if (error == 0) error = seccomp_load(filter.get());
  if (error == 0) return OkStatus();
  return Err(StatusCode::kFailedPrecondition, "sandbox: the kernel refuses the filter (error {})",
             -error);
}

// Sends the place of a weight that lies in the model, and the parent reads it there. Other weights
// are sent in pieces, so that the parent never holds a whole large one.
class SocketSink : public WeightSink {
 public:
  SocketSink(int socket, std::string_view model) : socket_(socket), model_(model) {}

  StatusOr<Digest> Put(std::string_view bytes) override {
    const Digest digest = Sha256(bytes);
    const std::less_equal<const char*> not_after;
    if (not_after(model_.data(), bytes.data()) &&
        not_after(bytes.data() + bytes.size(), model_.data() + model_.size())) {
      const auto offset = static_cast<uint64_t>(bytes.data() - model_.data());
      AG_TRY(SendFrame(socket_, kSandboxWeightPlace,
                       EncodeFields(WeightPlace{digest, offset, bytes.size()})));
      return digest;
    }
    const std::string_view name(reinterpret_cast<const char*>(digest.bytes.data()),
                                digest.bytes.size());
    if (bytes.size() <= kSandboxPieceBytes) {
      AG_TRY(SendFrame(socket_, kSandboxWeight, std::string(name) + std::string(bytes)));
      return digest;
    }
    for (size_t at = 0; at < bytes.size(); at += kSandboxPieceBytes) {
      AG_TRY(SendFrame(socket_, kSandboxWeightPart, bytes.substr(at, kSandboxPieceBytes)));
    }
    AG_TRY(SendFrame(socket_, kSandboxWeightEnd, name));
    return digest;
  }

 private:
  int socket_;
  std::string_view model_;
};

// Returns the frame that the new-handler sends when memory runs out. The child makes it at its
// start, because later there may be no memory for it.
std::string& OutOfMemoryError() {
  static auto& error = *new std::string;
  return error;
}

[[noreturn]] void ReportOutOfMemory() {
  (void)SendFrame(kChildSocketFd, kSandboxError, OutOfMemoryError());
  ::_exit(0);
}

Status Serve(int socket) {
  AG_LET(Frame frame, ReceiveFrame(socket));
  AG_LET(const SandboxRequest request, DecodeFields<SandboxRequest>(frame.payload));
  if (frame.fds.size() != 1) return Err(StatusCode::kInternal, "sandbox: no model came");
  AG_LET(const std::shared_ptr<const MappedFile> model, MappedFile::FromFd(frame.fds[0].get()));
  frame.fds.clear();
  (void)Sha256("");  // Makes the library read its settings before the filter forbids it.
  OutOfMemoryError() = EncodeStatus(Err(StatusCode::kResourceExhausted,
                                        "model import needs more than its limit of {} MiB",
                                        MemoryLimit(request.memory_bytes) >> 20));
  std::set_new_handler(ReportOutOfMemory);
  AG_TRY(LockDown(request));
  SocketSink sink(socket, model->bytes());
  AG_LET(const ImportedModel imported, ImportOnnx(model->bytes(), request.options, sink));
  const std::string result = EncodeFields(imported);
  for (size_t at = 0; at < result.size(); at += kSandboxPieceBytes) {
    const std::string_view piece = std::string_view(result).substr(at, kSandboxPieceBytes);
    AG_TRY(SendFrame(socket, kSandboxResultPart, piece));
  }
  return SendFrame(socket, kSandboxDone, "");
}

}  // namespace

Status LockDown(const SandboxRequest& limits) {
  AG_TRY(SetLimits(limits));
  return InstallFilter();
}

int RunSandbox(int socket_fd) {
  const Status status = Serve(socket_fd);
  if (!status.ok()) (void)SendFrame(socket_fd, kSandboxError, EncodeStatus(status));
  ::_exit(0);  // The filter would kill destructors of other parts of the program.
}

}  // namespace ag
