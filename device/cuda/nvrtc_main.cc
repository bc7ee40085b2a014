// The program autograph-nvrtc, which compiles CUDA C++ for the process that spawned it
// (launch/compiler.h), so that a crash of the compiler ends no other process. Loads NVRTC with the
// first source.
#include <dlfcn.h>
#include <glob.h>
#include <nvrtc.h>

#include <cstdio>

#include "base/bytes.h"
#include "base/frames.h"
#include "base/process.h"
#include "base/text.h"
#include "device/cuda/launch/compiler.h"

namespace ag::cuda {
namespace {

constexpr char kLibrary[] = "libnvrtc.so.13";
constexpr size_t kLogMax = 2000;  // Of a log that is passed on.

// The calls of NVRTC that are used here, found in the library by name.
struct Nvrtc {
  decltype(&nvrtcCreateProgram) create = nullptr;
  decltype(&nvrtcDestroyProgram) destroy = nullptr;
  decltype(&nvrtcCompileProgram) compile = nullptr;
  decltype(&nvrtcGetProgramLogSize) log_size = nullptr;
  decltype(&nvrtcGetProgramLog) log = nullptr;
  decltype(&nvrtcGetCUBINSize) image_size = nullptr;
  decltype(&nvrtcGetCUBIN) image = nullptr;
  decltype(&nvrtcGetErrorString) error_text = nullptr;
};

template <class Call>
bool Find(void* library, const char* name, Call* call) {
  *call = reinterpret_cast<Call>(dlsym(library, name));
  return *call != nullptr;
}

// Loads NVRTC's builtins, which NVRTC looks for by its own minor version and not in its own folder.
void LoadBuiltins(const std::string& path) {
  glob_t found{};
  if (::glob((path + "libnvrtc-builtins.so.13*").c_str(), 0, nullptr, &found) == 0) {
    for (size_t i = 0; i < found.gl_pathc; ++i) dlopen(found.gl_pathv[i], RTLD_NOW | RTLD_GLOBAL);
  }
  ::globfree(&found);
}

StatusOr<Nvrtc> LoadNvrtc(const std::string& folders) {
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  for (const std::string_view folder : Split(folders, ':')) {
    if (library != nullptr) break;
    if (folder.empty()) continue;
    const std::string path = std::string(folder) + "/";
    LoadBuiltins(path);
    library = dlopen((path + kLibrary).c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  if (library == nullptr) {
    return Err(
        StatusCode::kUnimplemented,
        "{} is not to be found by the loader nor in {}; install CUDA 13's NVRTC (pip install "
        "nvidia-cuda-nvrtc), or name its folder in AUTOGRAPH_CUDA_PATH",
        kLibrary, folders.empty() ? "any known folder" : folders);
  }
  Nvrtc nvrtc;
  const bool has_all = Find(library, "nvrtcCreateProgram", &nvrtc.create) &&
                       Find(library, "nvrtcDestroyProgram", &nvrtc.destroy) &&
                       Find(library, "nvrtcCompileProgram", &nvrtc.compile) &&
                       Find(library, "nvrtcGetProgramLogSize", &nvrtc.log_size) &&
                       Find(library, "nvrtcGetProgramLog", &nvrtc.log) &&
                       Find(library, "nvrtcGetCUBINSize", &nvrtc.image_size) &&
                       Find(library, "nvrtcGetCUBIN", &nvrtc.image) &&
                       Find(library, "nvrtcGetErrorString", &nvrtc.error_text);
  if (has_all) return nvrtc;
  return Err(StatusCode::kUnimplemented, "{}: lacks calls of NVRTC", kLibrary);
}

std::string LogOf(const Nvrtc& nvrtc, nvrtcProgram program) {
  size_t size = 0;
  if (nvrtc.log_size(program, &size) != NVRTC_SUCCESS || size <= 1) return "";
  std::string log(size, '\0');
  if (nvrtc.log(program, log.data()) != NVRTC_SUCCESS) return "";
  log.resize(std::min(size - 1, kLogMax));
  return log;
}

StatusOr<std::string> CompileProgram(const Nvrtc& nvrtc, nvrtcProgram program,
                                     uint32_t capability) {
  const std::string architecture = fmt::format("--gpu-architecture=sm_{}", capability);
  const char* const options[] = {architecture.c_str(), kNvrtcFlags[0], kNvrtcFlags[1]};
  const nvrtcResult compiled = nvrtc.compile(program, std::size(options), options);
  if (compiled != NVRTC_SUCCESS) {
    return Err(StatusCode::kInvalidArgument, "{}: {}", nvrtc.error_text(compiled),
               LogOf(nvrtc, program));
  }
  size_t size = 0;
  nvrtcResult got = nvrtc.image_size(program, &size);
  std::string image(size, '\0');
  if (got == NVRTC_SUCCESS) got = nvrtc.image(program, image.data());
  if (got == NVRTC_SUCCESS && size > 0) return image;
  return Err(StatusCode::kInternal, "no image: {}", nvrtc.error_text(got));
}

StatusOr<std::string> CompileText(const Nvrtc& nvrtc, const std::string& text,
                                  uint32_t capability) {
  nvrtcProgram program = nullptr;
  const nvrtcResult made = nvrtc.create(&program, text.c_str(), "group.cu", 0, nullptr, nullptr);
  if (made != NVRTC_SUCCESS) {
    return Err(StatusCode::kInternal, "make a program: {}", nvrtc.error_text(made));
  }
  StatusOr<std::string> image = CompileProgram(nvrtc, program, capability);
  nvrtc.destroy(&program);
  return image;
}

// Returns OK when an answer was sent, whatever it says.
Status Answer(int socket, const Frame& frame, StatusOr<Nvrtc>* nvrtc) {
  ByteReader request(frame.payload);
  AG_LET(const uint32_t capability, request.U32());
  AG_LET(const std::string folders, request.String());
  AG_LET(const std::string text, request.String());
  if (!nvrtc->ok()) *nvrtc = LoadNvrtc(folders);
  const StatusOr<std::string> image =
      nvrtc->ok() ? CompileText(**nvrtc, text, capability) : StatusOr<std::string>(nvrtc->status());
  if (image.ok()) return SendFrame(socket, kNvrtcImageFrame, *image);
  return SendFrame(socket, kNvrtcFailedFrame, EncodeStatus(image.status()));
}

int Serve(int socket) {
  StatusOr<Nvrtc> nvrtc = Err(StatusCode::kUnimplemented, "not loaded");
  for (;;) {
    const StatusOr<Frame> frame = ReceiveFrame(socket);
    if (!frame.ok()) return 0;  // The parent has ended.
    if (const Status answered = Answer(socket, *frame, &nvrtc); !answered.ok()) return 1;
  }
}

}  // namespace
}  // namespace ag::cuda

int main(int argc, char** argv) {
  ag::RegisterChildRole(ag::cuda::kNvrtcRole, &ag::cuda::Serve);
  const int code = ag::RunChildRole(argc, argv);
  if (code >= 0) return code;
  std::fprintf(stderr, "autograph-nvrtc: is started by the other programs, not by hand\n");
  return 2;
}
