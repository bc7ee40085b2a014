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

// Returns the environments whose wheels may be meant: the active one, that of the first python3 in
// PATH (containers often run one that is not activated), the system's.
std::vector<fs::path> PythonEnvironments() {
  std::vector<fs::path> environments;
  const auto add = [&](const fs::path& environment) {
    if (std::ranges::count(environments, environment) == 0) environments.push_back(environment);
  };
  if (const char* active = std::getenv("VIRTUAL_ENV"); active != nullptr) add(active);
  const char* const path = std::getenv("PATH");
  for (const std::string_view folder : Split(path == nullptr ? "" : path, ':')) {
    std::error_code error;
    if (folder.empty() || !fs::exists(fs::path(folder) / "python3", error)) continue;
    add(fs::path(folder).parent_path());
    break;
  }
  for (const char* const environment : {"/usr/local", "/usr"}) add(environment);
  return environments;
}

// Returns the existing folders of AUTOGRAPH_CUDA_PATH.
std::vector<std::string> NamedFolders() {
  std::vector<std::string> folders;
  if (const char* own = std::getenv("AUTOGRAPH_CUDA_PATH"); own != nullptr) {
    for (const std::string_view folder : Split(own, ':')) {
      if (!folder.empty()) AddFolder(fs::path(folder), &folders);
    }
  }
  return folders;
}

std::string LoaderError() {
  const char* error = dlerror();
  return error == nullptr ? "unknown error" : error;
}

// Loads a library: from a folder that the user named, else by its bare name, else from the first
// other folder that has it. Returns false when none of these works.
bool Load(const std::string& name, const std::vector<std::string>& folders) {
  const auto load = [](const std::string& path) {
    return dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr;
  };
  const auto load_from = [&](const std::string& folder) { return load(folder + "/" + name); };
  return std::ranges::any_of(NamedFolders(), load_from) || load(name) ||
         std::ranges::any_of(folders, load_from);
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
  std::vector<std::string> folders = NamedFolders();
  for (const char* folder : {"/usr/local/cuda/lib64", "/usr/local/cuda/targets/x86_64-linux/lib"}) {
    AddFolder(folder, &folders);
  }
  for (const fs::path& environment : PythonEnvironments()) AddWheels(environment, &folders);
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
