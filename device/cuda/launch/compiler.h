// From generated text to an image that a driver loads. Compilers crash on bad input (NVRTC has), so
// the real one runs in children of its own; what was compiled once is kept on disk.
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
  // compiler's log, cut. Every message begins with the first line of `source`. kInternal: the
  // compiler crashed; kDeadlineExceeded: it took too long; kUnimplemented: there is no compiler.
  virtual StatusOr<std::string> Compile(const std::string& source, int compute_capability) = 0;

  // As Compile will be called with these soon: it may begin meanwhile. Returns at once.
  virtual void Prepare(const std::string&, int) {}
};

struct NvrtcOptions {
  std::string library_folders;  // Where libnvrtc may lie besides the loader's own, between ':'.
  std::string program;  // autograph-nvrtc; "": beside this code, or in the bin beside its lib.
  // Images by digest of text and architecture; "": autograph/compiled in the user's cache folder,
  // nothing is kept where there is none. The oldest go when there are more bytes than this.
  std::string cache_folder;
  int64_t cache_bytes_max = CompiledCache::kBytesMax;
  int children = 0;                // At most so many at a time; 0: half the cores, 8 at most.
  Nanos time_max{60'000'000'000};  // Of one source.
};

// NVRTC in children that start with the first source. Thread-safe.
std::unique_ptr<Compiler> MakeNvrtcCompiler(const NvrtcOptions& options);

// What the child gives to NVRTC besides the architecture; part of the key of what is kept.
inline constexpr const char* kNvrtcFlags[] = {"--std=c++20", "--device-as-default-execution-space"};

// What parent and child say to each other. The child serves sources until its socket closes.
inline constexpr char kNvrtcRole[] = "nvrtc";
enum NvrtcFrame : uint32_t {
  kNvrtcSourceFrame = 1,  // u32 compute capability, string library folders, string text.
  kNvrtcImageFrame = 2,   // The image.
  kNvrtcFailedFrame = 3,  // u8 absl code, string message.
};

}  // namespace ag::cuda
