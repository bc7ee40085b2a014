// The compiler from generated text to an image that a driver loads. NVRTC can crash on bad input,
// so it runs in child processes; images are kept on disk.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "device/cuda/launch/compiled_cache.h"

namespace ag::cuda {

class Compiler {
 public:
  virtual ~Compiler() = default;

  // Compiles `source` (CUDA C++ on codegen/prelude.h, which is put before it) for
  // `compute_capability` (10 * major + minor). kInvalidArgument: it does not compile, with the
  // compiler's log, cut. kInternal: the compiler crashed; kDeadlineExceeded: it took too long;
  // kUnimplemented: there is no compiler. Every message begins with the first line of `source`.
  virtual StatusOr<std::string> Compile(const std::string& source, int compute_capability) = 0;

  // Begins a compilation that Compile will soon be called for. Returns at once.
  virtual void Prepare(const std::string&, int) {}
};

struct NvrtcOptions {
  std::string library_folders;  // More folders to look for libnvrtc, separated by ':'.
  std::string program;  // autograph-nvrtc; "": beside this code, or in the bin beside its lib.
  // The folder of images, by digest of text and architecture; "": autograph/compiled in the user's
  // cache folder, or nothing is kept where there is none. The oldest are removed beyond
  // cache_bytes_max.
  std::string cache_folder;
  int64_t cache_bytes_max = CompiledCache::kBytesMax;
  int children = 0;                // Children at a time; 0: half the cores, 8 at most.
  Nanos time_max{60'000'000'000};  // Of one source.
};

// Returns NVRTC in child processes that start with the first source. Thread-safe.
std::unique_ptr<Compiler> MakeNvrtcCompiler(const NvrtcOptions& options);

// The flags of NVRTC besides the architecture; part of the image's key.
inline constexpr const char* kNvrtcFlags[] = {"--std=c++20", "--device-as-default-execution-space"};

// The frames between parent and child. The child serves sources until its socket closes.
inline constexpr char kNvrtcRole[] = "nvrtc";
enum NvrtcFrame : uint32_t {
  kNvrtcSourceFrame = 1,  // u32 compute capability, string library folders, string text.
  kNvrtcImageFrame = 2,   // The image.
  kNvrtcFailedFrame = 3,  // EncodeStatus of the error.
};

}  // namespace ag::cuda
