// autograph-nvrtc: compiles CUDA C++ for NvrtcCompiler (launch/nvrtc_compiler.h), one text after
// another over the socket that it was started with. NVRTC is loaded when the program starts, from
// where the system finds libraries or from the CUDA installation.
#include <dlfcn.h>
#include <nvrtc.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/frames.h"
#include "base/process.h"
#include "device/cuda/launch/nvrtc_compiler.h"

namespace ag::cuda {
namespace {

// The functions of the library that are used.
struct Nvrtc {
  decltype(&nvrtcVersion) version = nullptr;
  decltype(&nvrtcCreateProgram) create = nullptr;
  decltype(&nvrtcDestroyProgram) destroy = nullptr;
  decltype(&nvrtcCompileProgram) compile = nullptr;
  decltype(&nvrtcGetProgramLogSize) log_size = nullptr;
  decltype(&nvrtcGetProgramLog) log = nullptr;
  decltype(&nvrtcGetCUBINSize) cubin_size = nullptr;
  decltype(&nvrtcGetCUBIN) cubin = nullptr;
  decltype(&nvrtcGetErrorString) error = nullptr;
};

void* OpenLibrary() {
  std::vector<std::string> folders{""};
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    const char* value = std::getenv(variable);
    if (value != nullptr) folders.push_back(std::string(value) + "/lib64/");
  }
  folders.push_back("/usr/local/cuda/lib64/");
  for (const std::string& folder : folders) {
    for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}) {
      if (void* library = dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    }
  }
  return nullptr;
}

template <class Function>
bool Find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

StatusOr<Nvrtc> LoadNvrtc() {
  void* library = OpenLibrary();
  if (library == nullptr) {
    return Err(StatusCode::kNotFound,
               "libnvrtc.so was found neither where the system looks nor under $CUDA_HOME nor in "
               "/usr/local/cuda; install the CUDA Toolkit or set LD_LIBRARY_PATH");
  }
  Nvrtc n;
  const bool is_whole =
      Find(library, "nvrtcVersion", &n.version) && Find(library, "nvrtcCreateProgram", &n.create) &&
      Find(library, "nvrtcDestroyProgram", &n.destroy) &&
      Find(library, "nvrtcCompileProgram", &n.compile) &&
      Find(library, "nvrtcGetProgramLogSize", &n.log_size) &&
      Find(library, "nvrtcGetProgramLog", &n.log) &&
      Find(library, "nvrtcGetCUBINSize", &n.cubin_size) &&
      Find(library, "nvrtcGetCUBIN", &n.cubin) && Find(library, "nvrtcGetErrorString", &n.error);
  if (!is_whole) return Err(StatusCode::kFailedPrecondition, "libnvrtc.so lacks functions");
  return n;
}

// What the compiler said, without what pads the text.
std::string LogOf(const Nvrtc& nvrtc, nvrtcProgram program) {
  size_t size = 0;
  if (nvrtc.log_size(program, &size) != NVRTC_SUCCESS || size <= 1) return "";
  std::string log(size, '\0');
  if (nvrtc.log(program, log.data()) != NVRTC_SUCCESS) return "";
  log.resize(size - 1);
  return log;
}

StatusOr<std::string> CompileProgram(const Nvrtc& nvrtc, nvrtcProgram program,
                                     uint32_t compute_capability) {
  const std::string architecture = fmt::format("--gpu-architecture=sm_{}", compute_capability);
  const char* options[] = {architecture.c_str(), "--std=c++20", "--fmad=true"};
  const nvrtcResult result = nvrtc.compile(program, static_cast<int>(std::size(options)), options);
  if (result != NVRTC_SUCCESS) {
    return Err(StatusCode::kInternal, "{}\n{}", nvrtc.error(result), LogOf(nvrtc, program));
  }
  size_t size = 0;
  nvrtcResult got = nvrtc.cubin_size(program, &size);
  std::string cubin(size, '\0');
  if (got == NVRTC_SUCCESS) got = nvrtc.cubin(program, cubin.data());
  if (got != NVRTC_SUCCESS) return Err(StatusCode::kInternal, "no cubin: {}", nvrtc.error(got));
  return cubin;
}

StatusOr<std::string> Compile(const Nvrtc& nvrtc, std::string_view payload) {
  ByteReader in(payload);
  AG_LET(const uint32_t compute_capability, in.U32());
  AG_LET(const std::string text, in.String());
  AG_TRY(in.End());
  nvrtcProgram program = nullptr;
  const nvrtcResult made = nvrtc.create(&program, text.c_str(), "group.cu", 0, nullptr, nullptr);
  if (made != NVRTC_SUCCESS) return Err(StatusCode::kInternal, "{}", nvrtc.error(made));
  StatusOr<std::string> cubin = CompileProgram(nvrtc, program, compute_capability);
  nvrtc.destroy(&program);
  return cubin;
}

StatusOr<std::string> VersionOf(const Nvrtc& nvrtc) {
  int major = 0, minor = 0;
  if (nvrtc.version(&major, &minor) != NVRTC_SUCCESS) {
    return Err(StatusCode::kInternal, "NVRTC does not say its version");
  }
  return fmt::format("{}.{}", major, minor);
}

StatusOr<std::string> Answer(const StatusOr<Nvrtc>& nvrtc, const Frame& request) {
  AG_TRY(nvrtc);
  const bool is_version = request.type == static_cast<uint32_t>(NvrtcFrame::kVersion);
  return is_version ? VersionOf(*nvrtc) : Compile(*nvrtc, request.payload);
}

// Answers until the parent is gone.
int Serve(int socket) {
  const StatusOr<Nvrtc> nvrtc = LoadNvrtc();
  while (true) {
    const StatusOr<Frame> request = ReceiveFrame(socket);
    if (!request.ok()) return 0;
    const StatusOr<std::string> answer = Answer(nvrtc, *request);
    const NvrtcFrame type = answer.ok() ? NvrtcFrame::kDone : NvrtcFrame::kRefused;
    const std::string payload = answer.ok() ? *answer : Message(answer.status());
    if (!SendFrame(socket, static_cast<uint32_t>(type), payload).ok()) return 0;
  }
}

}  // namespace
}  // namespace ag::cuda

int main(int argc, char** argv) {
  ag::RegisterChildRole(ag::cuda::kNvrtcRole, ag::cuda::Serve);
  if (const int code = ag::RunChildRole(argc, argv); code >= 0) return code;
  std::fputs("autograph-nvrtc compiles kernels for a program that starts it; it has no flags\n",
             stderr);
  return 2;
}
