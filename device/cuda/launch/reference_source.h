// Kernels for a HostDriver that compute with the reference kernels, in the stored types and layouts
// of the group: for tests of all that lies between a plan and its kernels. Each launch is two
// kernels; the first leaves marks in the workspace and spoils the outputs, the second finds the
// marks or fails.
#pragma once

#include <map>
#include <memory>

#include "device/cuda/launch/group_kernel.h"
#include "device/cuda/launch/host_driver.h"

namespace ag::cuda {

// Functions by name, shared between a source that makes them and the driver that finds them.
using HostFunctions = std::shared_ptr<std::map<std::string, HostDriver::Function>>;

// HostDriver::Options::find over `functions`.
std::function<StatusOr<HostDriver::Function>(const std::string&, const std::string&)> FindIn(
    HostFunctions functions);

// Its kernels are "reference:plain" and "reference:early", of which the second can begin early.
// `driver` outlives it.
std::unique_ptr<KernelSource> MakeReferenceSource(Driver& driver, HostFunctions functions);

}  // namespace ag::cuda
