#include "device/cuda/codegen/testing/host_kernels.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/file.h"
#include "base/process.h"
#include "base/text.h"
#include "device/cuda/codegen/prelude.h"
#include "device/cuda/codegen/testing/host_fibers.h"

namespace ag::cuda {
namespace {

// The same declarations as in the host's prelude.
struct AgWords {
  unsigned at[6];
};
struct AgHost {
  int thread;
  int block[3];
  void (*barrier)();
  const AgWords* (*gather)(const AgWords& mine);
  void (*refuse_access)(const void* pointer, int bytes);
};

std::string FindCompiler() {
  const char* path = std::getenv("PATH");
  for (const char* name : {"c++", "g++", "clang++"}) {
    for (const std::string_view folder : Split(path == nullptr ? "" : path, ':')) {
      const std::string program = fmt::format("{}/{}", folder, name);
      if (!folder.empty() && access(program.c_str(), X_OK) == 0) return program;
    }
  }
  return "";
}

// The threads of one block: which of them wait at the block's barrier, and which for their warp. A
// barrier opens only when all threads of the block, or of the warp, wait at it.
class BlockRun {
 public:
  BlockRun(AgHost* host, int threads)
      : host_(host), threads_(threads), lanes_(threads), warps_((threads + 31) / 32) {}

  Status Run(Fibers* fibers, void (*entry)(const void* const*), const void* const* arguments) {
    fibers_ = fibers;
    running = this;
    std::ranges::fill(lanes_, Lane());
    fibers->Start(threads_, [&](int) { entry(arguments); });
    while (true) {
      bool has_run = false;
      for (int i = 0; i < threads_; ++i) {
        if (lanes_[i].wait != Wait::kNone || fibers->HasEnded(i)) continue;
        host_->thread = i;
        fibers->Resume(i);
        has_run = true;
        if (!error_.ok()) return error_;
      }
      if (has_run) continue;
      if (Ended(0, threads_) == threads_) return OkStatus();
      AG_TRY(Release());
    }
  }

  // The functions that the kernel calls.
  static void Barrier() { running->Pause(Wait::kBlock); }
  static const AgWords* Gather(const AgWords& mine) {
    BlockRun& run = *running;
    const int self = run.host_->thread;
    run.lanes_[self].words = mine;
    run.Pause(Wait::kWarp);
    return run.warps_[self / 32].data();
  }
  static void RefuseAccess(const void* pointer, int bytes) {
    BlockRun& run = *running;
    run.error_ = Err(StatusCode::kInternal, "thread {}: an access of {} bytes at ...{:x}",
                     run.host_->thread, bytes, reinterpret_cast<uintptr_t>(pointer) & 0xff);
    run.Pause(Wait::kBlock);
  }

 private:
  enum class Wait : uint8_t { kNone, kBlock, kWarp };
  struct Lane {
    Wait wait = Wait::kNone;
    AgWords words{};  // The words that it gives to its warp.
  };

  void Pause(Wait wait) {
    const int self = host_->thread;
    lanes_[self].wait = wait;
    fibers_->Yield();
    host_->thread = self;
  }

  int Ended(int begin, int end) const {
    int count = 0;
    for (int i = begin; i < end; ++i) count += fibers_->HasEnded(i) ? 1 : 0;
    return count;
  }
  int Waiting(int begin, int end, Wait wait) const {
    return static_cast<int>(std::count_if(lanes_.begin() + begin, lanes_.begin() + end,
                                          [&](const Lane& lane) { return lane.wait == wait; }));
  }

  // No thread can continue: releases the threads whose block or warp is complete.
  Status Release() {
    if (Waiting(0, threads_, Wait::kBlock) == threads_) {
      for (Lane& lane : lanes_) lane.wait = Wait::kNone;
      return OkStatus();
    }
    bool is_free = false;
    for (int begin = 0; begin < threads_; begin += 32) {
      const int end = std::min(begin + 32, threads_);
      if (Waiting(begin, end, Wait::kWarp) != end - begin) continue;
      for (int i = begin; i < end; ++i) {
        warps_[begin / 32][i - begin] = lanes_[i].words;
        lanes_[i].wait = Wait::kNone;
      }
      is_free = true;
    }
    if (is_free) return OkStatus();
    return Err(StatusCode::kInternal,
               "of {} threads {} wait at a barrier, {} for their warp and {} have ended", threads_,
               Waiting(0, threads_, Wait::kBlock), Waiting(0, threads_, Wait::kWarp),
               Ended(0, threads_));
  }

  static thread_local BlockRun* running;

  AgHost* host_;
  int threads_;
  Fibers* fibers_ = nullptr;
  std::vector<Lane> lanes_;
  // The words of the warp's threads when the last of them arrived. All have read them before any
  // gives new ones, because only then is the warp complete again.
  std::vector<std::array<AgWords, 32>> warps_;
  Status error_;
};

thread_local BlockRun* BlockRun::running = nullptr;

}  // namespace

StatusOr<std::string> CompileForHost(const std::string& source) {
#if !defined(__x86_64__) && !defined(__aarch64__)
  return Err(StatusCode::kUnimplemented, "kernels on the host: no fibers for this processor");
#endif
  const std::string compiler = FindCompiler();
  if (compiler.empty()) {
    return Err(StatusCode::kUnimplemented,
               "kernels on the host: no C++ compiler (c++, g++, clang++) on PATH");
  }
  AG_LET(const TempDir folder, TempDir::Make("ag-host-kernels"));
  const std::string text = folder.path() + "/kernels.cc", object = folder.path() + "/kernels.so";
  const std::string log = folder.path() + "/log";
  AG_TRY(WriteFileAtomically(text, HostPrelude() + source));
  // A shell writes the compiler's output to a file. The paths are its parameters, not part of its
  // text.
  static constexpr char kCommand[] = R"(exec "$0" -std=c++20 -O0 -fno-strict-aliasing -w \
      -shared -fPIC -o "$1" "$2" 2>"$3")";
  const SpawnOptions options{.program = "/bin/sh",
                             .args = {"-c", kCommand, compiler, object, text, log}};
  AG_LET(ChildProcess child, ChildProcess::Spawn(options));
  if (const Status status = child.Wait(); !status.ok()) {
    const StatusOr<std::string> said = ReadFile(log);
    return Err(StatusCode::kInternal, "{}: {}\n{}", compiler, Message(status),
               said.ok() ? said->substr(0, 2000) : "");
  }
  return ReadFile(object);
}

struct HostModule::State {
  void* library = nullptr;
  AgHost host{};
  Fibers fibers;
  ~State() {
    if (library != nullptr) dlclose(library);
  }
};

HostModule::HostModule(std::unique_ptr<State> state) : state_(std::move(state)) {}
HostModule::HostModule(HostModule&&) noexcept = default;
HostModule& HostModule::operator=(HostModule&&) noexcept = default;
HostModule::~HostModule() = default;

StatusOr<HostModule> HostModule::Load(const std::string& bytes) {
  AG_LET(const TempDir folder, TempDir::Make("ag-host-kernels"));
  const std::string path = folder.path() + "/kernels.so";
  AG_TRY(WriteFileAtomically(path, bytes));
  auto state = std::make_unique<State>();
  state->library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (state->library == nullptr) {
    return Err(StatusCode::kDataLoss, "kernels on the host: {}", dlerror());
  }
  auto** host = static_cast<AgHost**>(dlsym(state->library, "ag_host"));
  if (host == nullptr) {
    return Err(StatusCode::kDataLoss, "kernels on the host: no ag_host in the module");
  }
  state->host = {.barrier = BlockRun::Barrier,
                 .gather = BlockRun::Gather,
                 .refuse_access = BlockRun::RefuseAccess};
  *host = &state->host;
  return HostModule(std::move(state));
}

bool HostModule::Has(const std::string& function) const {
  return dlsym(state_->library, (function + "_entry").c_str()) != nullptr;
}

Status HostModule::Run(const std::string& function, std::array<uint32_t, 3> grid,
                       std::array<uint32_t, 3> block, uint32_t,
                       std::span<const void* const> arguments) {
  void* entry = dlsym(state_->library, (function + "_entry").c_str());
  if (entry == nullptr) return Err(StatusCode::kNotFound, "no kernel {}", function);
  AgHost& host = state_->host;
  const int threads = static_cast<int>(block[0] * block[1] * block[2]);
  BlockRun run(&host, threads);
  for (uint32_t z = 0; z < grid[2]; ++z) {
    for (uint32_t y = 0; y < grid[1]; ++y) {
      for (uint32_t x = 0; x < grid[0]; ++x) {
        host.block[0] = static_cast<int>(x);
        host.block[1] = static_cast<int>(y);
        host.block[2] = static_cast<int>(z);
        const Status status =
            run.Run(&state_->fibers, reinterpret_cast<void (*)(const void* const*)>(entry),
                    arguments.data());
        AG_TRY(status, "{}: block {},{},{}", function, x, y, z);
      }
    }
  }
  return OkStatus();
}

}  // namespace ag::cuda
