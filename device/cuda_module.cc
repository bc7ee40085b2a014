#include "device/cuda_module.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/build_facts.h"
#include "base/process.h"
#include "base/text.h"
#include "device/api/module_call.h"

namespace ag {
namespace {

namespace fs = std::filesystem;

constexpr char kModule[] = "libautograph_cuda.so";

// The libraries that the module links, and what to install where one is missing.
struct Library {
  const char* name;
  const char* remedy;
};
constexpr Library kLibraries[] = {
    {"libcublasLt.so.13", "install CUDA 13's cuBLAS (pip install nvidia-cublas)"},
    {"libcudnn.so.9", "install cuDNN 9 (pip install nvidia-cudnn-cu13)"},
};

void AddFolder(const fs::path& folder, std::vector<std::string>* folders) {
  std::error_code error;
  if (fs::is_directory(folder, error)) folders->push_back(folder.string());
}

// Adds the lib folders of all wheels nvidia-* below a Python environment.
void AddWheels(const fs::path& environment, std::vector<std::string>* folders) {
  std::error_code error;
  for (const auto& python : fs::directory_iterator(environment / "lib", error)) {
    for (const char* packages : {"site-packages", "dist-packages"}) {
      const fs::path nvidia = python.path() / packages / "nvidia";
      std::vector<fs::path> found;
      for (const auto& wheel : fs::directory_iterator(nvidia, error)) found.push_back(wheel.path());
      std::ranges::sort(found);
      for (const fs::path& wheel : found) AddFolder(wheel / "lib", folders);
    }
  }
}

std::string LoaderError() {
  const char* error = dlerror();
  return error == nullptr ? "unknown error" : error;
}

// Loads a library by its bare name, else from the first folder that has it; returns false when
// neither works.
bool Load(const std::string& name, const std::vector<std::string>& folders) {
  if (dlopen(name.c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr) return true;
  for (const std::string& folder : folders) {
    if (dlopen((folder + "/" + name).c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr) return true;
  }
  return false;
}

// Returns the module's possible paths: beside this code (a program, or the runtime's library), and
// in the lib folder beside a program's bin.
std::vector<std::string> ModulePaths() {
  std::vector<std::string> paths;
  Dl_info own{};
  if (dladdr(reinterpret_cast<const void*>(&ModulePaths), &own) != 0 && own.dli_fname != nullptr) {
    std::error_code error;
    const fs::path folder = fs::canonical(own.dli_fname, error).parent_path();
    if (!error) {
      paths.push_back((folder / kModule).string());
      paths.push_back((folder.parent_path() / "lib" / kModule).string());
    }
  }
  return paths;
}

StatusOr<OpenCudaCall*> LoadModule() {
  std::vector<std::string> present;
  for (const std::string& path : ModulePaths()) {
    if (fs::exists(path)) present.push_back(path);
  }
  if (present.empty()) {
    return Err(StatusCode::kUnimplemented,
               "this build has no CUDA module ({}); cpu and sim:NAME work here", kModule);
  }
  if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    return Err(StatusCode::kUnimplemented,
               "no NVIDIA driver here ({}): install it; cpu and sim:NAME work here", LoaderError());
  }
  const std::vector<std::string> folders = CudaLibraryFolders();
  for (const Library& library : kLibraries) {
    if (Load(library.name, folders)) continue;
    return Err(StatusCode::kUnimplemented,
               "{} is not to be found by the loader nor in {}; {}, or name its folder in "
               "AUTOGRAPH_CUDA_PATH",
               library.name, folders.empty() ? "any known folder" : Join(folders, ", "),
               library.remedy);
  }
  void* const module = dlopen(present[0].c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) {
    return Err(StatusCode::kUnimplemented, "{}: {}", present[0], LoaderError());
  }
  void* const symbol = dlsym(module, kOpenCudaSymbol);
  if (symbol == nullptr) {
    return Err(StatusCode::kUnimplemented, "{}: no {}", present[0], kOpenCudaSymbol);
  }
  return reinterpret_cast<OpenCudaCall*>(symbol);
}

}  // namespace

std::vector<std::string> CudaLibraryFolders() {
  std::vector<std::string> folders;
  if (const char* own = std::getenv("AUTOGRAPH_CUDA_PATH"); own != nullptr) {
    for (const std::string_view folder : Split(own, ':')) {
      if (!folder.empty()) AddFolder(fs::path(folder), &folders);
    }
  }
  for (const char* folder : {"/usr/local/cuda/lib64", "/usr/local/cuda/targets/x86_64-linux/lib"}) {
    AddFolder(folder, &folders);
  }
  if (const char* environment = std::getenv("VIRTUAL_ENV"); environment != nullptr) {
    AddWheels(environment, &folders);
  }
  for (const char* environment : {"/usr/local", "/usr"}) AddWheels(environment, &folders);
  return folders;
}

StatusOr<std::unique_ptr<Device>> OpenCudaModule(int ordinal) {
  const std::string name = fmt::format("cuda:{}", ordinal);
  StatusOr<OpenCudaCall*> open = LoadModule();
  AG_TRY(open, "{}", name);
  StatusOr<std::unique_ptr<Device>> device = Err(StatusCode::kInternal, "not opened");
  const std::string folders = Join(CudaLibraryFolders(), ":");
  (*open)(std::string(Version()).c_str(), ordinal, folders.c_str(), &device);
  if (!device.ok()) return Within(device.status(), name);
  return device;
}

}  // namespace ag
