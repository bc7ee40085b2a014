#include "device/open_device.h"

#include "base/file.h"
#include "base/text.h"
#include "device/api/device_name.h"
#include "device/cpu/cpu_device.h"
#include "device/cuda_module.h"
#include "device/sim/sim_device.h"
#include "embedded/device_specs.h"

namespace ag {
namespace {

// Returns the text of a built-in spec, by its file name without ".spec".
StatusOr<std::string> BuiltInSpec(const std::string& name) {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : DeviceSpecs()) {
    const std::string stem(file.name.substr(0, file.name.rfind('.')));
    if (stem == name) return std::string(file.text);
    names.push_back(stem);
  }
  return Err(StatusCode::kNotFound, "sim:{}: no such device spec{}; built-in are {}", name,
             DidYouMean(name, names), Join(names, ", "));
}

StatusOr<std::unique_ptr<Device>> OpenSim(const std::string& spec) {
  const bool is_file = IsSpecFile(spec);
  AG_LET(const std::string text, is_file ? ReadFile(spec) : BuiltInSpec(spec));
  const size_t slash = spec.rfind('/');
  const std::string folder = is_file && slash != spec.npos ? spec.substr(0, slash + 1) : ".";
  StatusOr<std::unique_ptr<Device>> device = OpenSimDevice(text, folder);
  if (!device.ok()) return Within(device.status(), "sim:" + spec);
  return device;
}

}  // namespace

StatusOr<std::unique_ptr<Device>> OpenDevice(const std::string& name) {
  AG_LET(const DeviceName parsed, ParseDeviceName(name));
  switch (parsed.kind) {
    case DeviceName::Kind::kCpu:
      return OpenCpuDevice({.cores = parsed.cores});
    case DeviceName::Kind::kSim:
      return OpenSim(parsed.spec);
    case DeviceName::Kind::kCuda:
      break;
  }
  return OpenCudaModule(parsed.ordinal);
}

}  // namespace ag
