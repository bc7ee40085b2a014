#include "device/cuda/launch/compiler.h"

#include <dlfcn.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <map>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/frames.h"
#include "base/mutex.h"
#include "base/process.h"
#include "device/cuda/codegen/prelude.h"
#include "device/cuda/launch/compiled_cache.h"
#include "device/cuda/launch/workers.h"

namespace ag::cuda {
namespace {

namespace fs = std::filesystem;

constexpr char kProgram[] = "autograph-nvrtc";
// Part of an image's key: all minor versions of a compiler share images.
constexpr char kLibrary[] = "libnvrtc.so.13";

// Returns the program beside this code, or in the bin folder beside its lib.
std::string FindProgram() {
  Dl_info own{};
  if (dladdr(reinterpret_cast<const void*>(&FindProgram), &own) == 0) return "";
  std::error_code error;
  const fs::path folder = fs::canonical(own.dli_fname, error).parent_path();
  for (const fs::path& path : {folder / kProgram, folder.parent_path() / "bin" / kProgram}) {
    if (!error && fs::exists(path)) return path.string();
  }
  return "";
}

// One child. One thread at a time.
class Child {
 public:
  explicit Child(const NvrtcOptions& options) : options_(options) {}

  // Compiles `text`, which includes its prelude.
  StatusOr<std::string> Compile(const std::string& text, int compute_capability) {
    if (!process_.has_value()) AG_TRY(Start());
    ByteWriter request;
    request.U32(static_cast<uint32_t>(compute_capability));
    request.String(options_.library_folders);
    request.String(text);
    StatusOr<Frame> answer = Err(StatusCode::kUnavailable, "");
    if (SendFrame(process_->socket(), kNvrtcSourceFrame, request.bytes()).ok()) {
      answer = ReceiveFrame(process_->socket(), {.timeout = options_.time_max});
    }
    if (!answer.ok()) return Gone(answer.status());
    if (answer->type == kNvrtcImageFrame) return std::move(answer->payload);
    const Status failed = DecodeStatus(answer->payload);
    return failed.ok() ? Err(StatusCode::kInternal, "the compiler failed with OK") : failed;
  }

 private:
  Status Start() {
    const std::string program = options_.program.empty() ? FindProgram() : options_.program;
    if (program.empty()) {
      return Err(StatusCode::kUnimplemented, "{} is not beside this program", kProgram);
    }
    AG_LET(process_, SpawnRole(kNvrtcRole, {}, program));
    return OkStatus();
  }

  // Reports that the child crashed, or hangs and is killed; the next source gets a new child.
  Status Gone(const Status& why) {
    const bool hangs = why.code() == StatusCode::kDeadlineExceeded;
    if (hangs) process_->Kill();
    const Status end = process_->Wait();
    process_.reset();
    if (hangs) {
      return Err(StatusCode::kDeadlineExceeded, "the compiler took longer than {} s",
                 std::chrono::duration<double>(options_.time_max).count());
    }
    return Err(StatusCode::kInternal, "the compiler died: {}", Message(end));
  }

  const NvrtcOptions& options_;
  std::optional<ChildProcess> process_;
};

class NvrtcCompiler : public Compiler {
 public:
  explicit NvrtcCompiler(const NvrtcOptions& options)
      : options_(options),
        cache_(options.cache_folder.empty() ? CompiledCache::DefaultFolder() : options.cache_folder,
               options.cache_bytes_max),
        workers_(static_cast<size_t>(options.children)) {}

  StatusOr<std::string> Compile(const std::string& source, int compute_capability) override {
    const Digest key = KeyOf(source, compute_capability);
    if (std::optional<std::string> image = cache_.Find(key)) {
      const MutexLock lock(mutex_);
      jobs_.erase(key);  // It may have been prepared.
      return *std::move(image);
    }
    const MutexLock lock(mutex_);
    const std::shared_ptr<Job> job = Add(key, source, compute_capability);
    while (!job->result.has_value()) changed_.Wait(mutex_);
    jobs_.erase(key);  // A later call finds it in the cache, or tries again.
    return *job->result;
  }

  void Prepare(const std::string& source, int compute_capability) override {
    const Digest key = KeyOf(source, compute_capability);
    if (cache_.Find(key).has_value()) return;
    const MutexLock lock(mutex_);
    Add(key, source, compute_capability);
  }

 private:
  struct Job {
    Digest key;
    std::string source;
    int compute_capability = 0;
    std::optional<StatusOr<std::string>> result;
  };

  static Digest KeyOf(const std::string& source, int compute_capability) {
    return Sha256(fmt::format("{};{};sm_{};{}{}", kLibrary, fmt::join(kNvrtcFlags, " "),
                              compute_capability, GpuPrelude(), source));
  }
  static std::string FirstLine(const std::string& source) {
    return source.substr(0, source.find('\n'));
  }

  std::shared_ptr<Job> Add(const Digest& key, const std::string& source, int compute_capability)
      AG_REQUIRES(mutex_) {
    std::shared_ptr<Job>& job = jobs_[key];
    if (job != nullptr) return job;
    job = std::make_shared<Job>(Job{key, source, compute_capability, std::nullopt});
    workers_.Add([this, job] { Run(*job); });
    return job;
  }

  void Run(Job& job) {
    std::unique_ptr<Child> child = TakeChild();
    StatusOr<std::string> result =
        child->Compile(GpuPrelude() + job.source, job.compute_capability);
    if (result.ok()) cache_.Put(job.key, *result);
    if (!result.ok()) result = Within(result.status(), FirstLine(job.source));
    const MutexLock lock(mutex_);
    idle_.push_back(std::move(child));
    job.result = std::move(result);
    changed_.NotifyAll();
  }

  std::unique_ptr<Child> TakeChild() {
    const MutexLock lock(mutex_);
    if (idle_.empty()) return std::make_unique<Child>(options_);
    std::unique_ptr<Child> child = std::move(idle_.back());
    idle_.pop_back();
    return child;
  }

  const NvrtcOptions options_;
  const CompiledCache cache_;
  Mutex mutex_;
  CondVar changed_;
  std::map<Digest, std::shared_ptr<Job>> jobs_ AG_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Child>> idle_ AG_GUARDED_BY(mutex_);
  Workers workers_;  // One for each child. Ends before the members that its tasks use.
};

}  // namespace

std::unique_ptr<Compiler> MakeNvrtcCompiler(const NvrtcOptions& options) {
  return std::make_unique<NvrtcCompiler>(options);
}

}  // namespace ag::cuda
