#include "device/cuda/launch/nvrtc_compiler.h"

#include <atomic>
#include <thread>

#include "base/bytes.h"
#include "base/file.h"
#include "base/frames.h"
#include "base/text.h"
#include "device/cuda/codegen/prelude.h"

namespace ag::cuda {
namespace {

constexpr size_t kLogCharactersMax = 2000;
constexpr uint64_t kImageBytesMax = uint64_t{64} << 20;
// What makes images differ beside the text: the options that the child gives to NVRTC.
constexpr std::string_view kOptionsVersion = "1";

std::string FirstLine(const std::string& source) {
  return std::string(Split(source, '\n')[0].substr(0, 200));
}

}  // namespace

NvrtcCompiler::NvrtcCompiler(Options options)
    : options_(std::move(options)),
      cache_(options_.folder, options_.folder_bytes_max),
      version_(options_.version) {}

std::string NvrtcCompiler::ProgramBeside(const std::string& own_path) {
  const std::string program = own_path.substr(0, own_path.rfind('/') + 1) + "autograph-nvrtc";
  return FileExists(program) ? program : "";
}

StatusOr<ChildProcess> NvrtcCompiler::Start() {
  if (options_.program.empty() || !FileExists(options_.program)) {
    return Err(StatusCode::kNotFound, "NVRTC: no program '{}'", options_.program);
  }
  ++children_started_;
  return SpawnRole(kNvrtcRole, {}, options_.program);
}

StatusOr<std::string> NvrtcCompiler::Ask(std::optional<ChildProcess>* child, NvrtcFrame request,
                                         std::string_view payload) {
  if (!child->has_value()) {
    AG_LET(*child, Start());
  }
  const int socket = (*child)->socket();
  const Status sent = SendFrame(socket, static_cast<uint32_t>(request), payload);
  StatusOr<Frame> answer =
      sent.ok() ? ReceiveFrame(socket, {options_.timeout, kImageBytesMax}) : StatusOr<Frame>(sent);
  if (answer.ok()) {
    if (answer->type == static_cast<uint32_t>(NvrtcFrame::kDone)) return std::move(answer->payload);
    return Err(StatusCode::kInternal, "{}", answer->payload.substr(0, kLogCharactersMax));
  }
  if (answer.status().code() == StatusCode::kDeadlineExceeded) {
    child->reset();
    const double seconds = std::chrono::duration<double>(options_.timeout).count();
    return Err(StatusCode::kDeadlineExceeded, "nothing after {} s", seconds);
  }
  // The socket closed: how the child ended says why.
  (*child)->Kill();
  const Status end = (*child)->Wait();
  child->reset();
  return Err(StatusCode::kUnavailable, "the compiler ended: {}", Message(end));
}

StatusOr<std::string> NvrtcCompiler::Version() {
  MutexLock lock(mutex_);
  if (!version_.empty()) return version_;
  std::optional<ChildProcess> child;
  AG_LET(version_, Ask(&child, NvrtcFrame::kVersion, ""));
  return version_;
}

StatusOr<std::string> NvrtcCompiler::CompileOne(std::optional<ChildProcess>* child,
                                                const std::string& source, int compute_capability) {
  ByteWriter request;
  request.U32(static_cast<uint32_t>(compute_capability));
  request.String(GpuPrelude() + source);
  StatusOr<std::string> image = Ask(child, NvrtcFrame::kCompile, request.bytes());
  AG_TRY(image, "NVRTC: {}", FirstLine(source));
  return image;
}

std::vector<StatusOr<std::string>> NvrtcCompiler::CompileAll(std::span<const std::string> sources,
                                                             int compute_capability) {
  const StatusOr<std::string> version = Version();
  if (!version.ok()) {
    return std::vector<StatusOr<std::string>>(sources.size(), version.status());
  }
  std::vector<StatusOr<std::string>> images(sources.size(), std::string());
  std::vector<Digest> keys;
  std::vector<size_t> missing;
  for (size_t i = 0; i < sources.size(); ++i) {
    Hasher hasher;
    for (const std::string_view part :
         {kOptionsVersion, std::string_view(*version), std::string_view(GpuPrelude()),
          std::string_view(sources[i])}) {
      hasher.Update(fmt::format("{}:", part.size()));
      hasher.Update(part);
    }
    hasher.Update(fmt::format("sm_{}", compute_capability));
    keys.push_back(hasher.Finish());
    if (std::optional<std::string> known = cache_.Get(keys[i])) {
      images[i] = *std::move(known);
    } else {
      missing.push_back(i);
    }
  }
  std::atomic<size_t> next{0};
  const auto work = [&] {
    std::optional<ChildProcess> child;
    for (size_t at = next++; at < missing.size(); at = next++) {
      const size_t i = missing[at];
      images[i] = CompileOne(&child, sources[i], compute_capability);
      if (images[i].ok()) cache_.Put(keys[i], *images[i]);
    }
  };
  std::vector<std::thread> helpers;
  const size_t children = std::min(missing.size(), static_cast<size_t>(options_.children));
  for (size_t i = 1; i < children; ++i) helpers.emplace_back(work);
  work();
  for (std::thread& helper : helpers) helper.join();
  return images;
}

}  // namespace ag::cuda
