// Kernels for a HostDriver that compute by the reference kernels, in the group's stored types and
// layouts: for tests of the code between a plan and its kernels. Each launch is two kernels; the
// first leaves marks in the workspace and spoils the outputs, the second fails unless it finds the
// marks. One thread at a time.
#pragma once

#include <map>
#include <memory>

#include "device/cuda/launch/group_kernel.h"
#include "device/cuda/launch/testing/host_driver.h"

namespace ag::cuda {

// Functions by name, shared between the source that makes them and the driver that finds them.
using HostFunctions = std::shared_ptr<std::map<std::string, HostDriver::Function>>;

// Returns HostDriver::Options::find over `functions`.
std::function<StatusOr<HostDriver::Function>(const std::string&, const std::string&)> FindIn(
    HostFunctions functions);

// Returns the source. Its kernels are "reference:plain" and "reference:early", of which the second
// can begin early. REQUIRES: `driver` outlives it.
std::unique_ptr<KernelSource> MakeReferenceSource(Driver& driver, HostFunctions functions);

}  // namespace ag::cuda
