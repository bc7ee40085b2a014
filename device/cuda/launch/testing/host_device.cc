#include "device/cuda/launch/testing/host_device.h"

#include "base/digest.h"
#include "device/cuda/codegen/testing/host_kernels.h"
#include "device/cuda/launch/generated_source.h"
#include "device/cuda/launch/testing/reference_source.h"

namespace ag::cuda {
namespace {

// The host's compiler; keeps what it has compiled.
class HostCompiler : public Compiler {
 public:
  StatusOr<std::string> Compile(const std::string& source, int) override {
    const Digest key = Sha256(source);
    if (const auto known = known_.find(key); known != known_.end()) return known->second;
    AG_LET(std::string image, CompileForHost(source));
    return known_[key] = std::move(image);
  }

 private:
  std::map<Digest, std::string> known_;
};

// Functions of images that HostCompiler made.
class LoadedImages {
 public:
  StatusOr<HostDriver::Function> Find(const std::string& image, const std::string& name) {
    std::shared_ptr<HostModule>& module = modules_[Sha256(image)];
    if (module == nullptr) {
      AG_LET(HostModule loaded, HostModule::Load(image));
      module = std::make_shared<HostModule>(std::move(loaded));
    }
    if (!module->Has(name)) return Err(StatusCode::kNotFound, "no function '{}'", name);
    return HostDriver::Function([module, name](const KernelLaunch& launch) {
      return module->Run(name, launch.grid, launch.block, launch.shared_bytes, launch.arguments);
    });
  }

 private:
  std::map<Digest, std::shared_ptr<HostModule>> modules_;
};

}  // namespace

std::unique_ptr<Device> OpenHostDevice(HostKernels kernels, DeviceSpec spec, uint64_t seed) {
  GpuParts parts;
  std::vector<std::unique_ptr<KernelSource>> sources;
  HostDriver::Options options{.seed = seed};
  if (kernels == HostKernels::kReference) {
    auto functions = std::make_shared<std::map<std::string, HostDriver::Function>>();
    options.find = FindIn(functions);
    parts.driver = std::make_unique<HostDriver>(options);
    sources.push_back(MakeReferenceSource(*parts.driver, functions));
  } else {
    options.find = [images = std::make_shared<LoadedImages>()](const std::string& image,
                                                               const std::string& name) {
      return images->Find(image, name);
    };
    parts.driver = std::make_unique<HostDriver>(options);
    sources.push_back(MakeGeneratedSource(*parts.driver, std::make_unique<HostCompiler>()));
  }
  parts.sources = std::make_unique<KernelSources>(std::move(sources));
  parts.spec = std::move(spec);
  parts.environment = "device=cuda-on-host";
  return MakeGpuDevice(std::move(parts));
}

}  // namespace ag::cuda
