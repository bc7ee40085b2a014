// NVRTC at arm's length: it has crashed on text that another compiler takes, so a child process
// compiles (the program autograph-nvrtc), and what comes of it is kept on disk.
#pragma once

#include <atomic>
#include <optional>

#include "base/clock.h"
#include "base/digest.h"
#include "base/process.h"
#include "device/cuda/launch/compiler.h"
#include "device/cuda/launch/image_cache.h"

namespace ag::cuda {

// What parent and child say to each other, in frames (base/frames.h). The child answers each
// request before it reads the next and ends when the parent is gone.
inline constexpr const char* kNvrtcRole = "nvrtc";
enum class NvrtcFrame : uint32_t {
  kCompile = 1,  // U32 compute capability, then the whole text.
  kVersion = 2,  // Nothing.
  kDone = 3,     // The cubin, or the version.
  kRefused = 4,  // The compiler's log.
};

class NvrtcCompiler : public Compiler {
 public:
  struct Options {
    std::string program;  // Path of autograph-nvrtc.
    std::string folder;   // Of the images that are kept; "": none are.
    int64_t folder_bytes_max = int64_t{256} << 20;
    Nanos timeout = std::chrono::seconds(60);  // For one text.
    int children = 2;                          // At once, at most.
    std::string version;  // Of NVRTC, part of the images' key; "": a child is asked, once.
  };
  explicit NvrtcCompiler(Options options);

  // The program beside ours, "" when there is none: where an installation has it.
  static std::string ProgramBeside(const std::string& own_path);

  // Of one text: kInternal with the compiler's log, cut; kUnavailable when the child died, with the
  // signal and the text's first line; kDeadlineExceeded; of all: kNotFound without the program.
  std::vector<StatusOr<std::string>> CompileAll(std::span<const std::string> sources,
                                                int compute_capability) override;

  int children_started() const { return children_started_; }

 private:
  StatusOr<ChildProcess> Start();
  StatusOr<std::string> Version();
  // Asks the child, which is started where there is none and given up when it fails.
  StatusOr<std::string> Ask(std::optional<ChildProcess>* child, NvrtcFrame request,
                            std::string_view payload);
  StatusOr<std::string> CompileOne(std::optional<ChildProcess>* child, const std::string& source,
                                   int compute_capability);

  const Options options_;
  ImageCache cache_;
  Mutex mutex_;
  std::string version_ AG_GUARDED_BY(mutex_);
  std::atomic<int> children_started_{0};
};

}  // namespace ag::cuda
