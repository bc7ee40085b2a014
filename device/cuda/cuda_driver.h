// The CUDA runtime behind launch/driver.h. What begins early is said by an attribute of the launch,
// which a capture turns into a programmatic edge.
#pragma once

#include <memory>

#include "device/cuda/launch/driver.h"

namespace ag::cuda {

// Uses device `ordinal` in this process from now on (it makes the primary context). kNotFound: no
// such device; kUnimplemented: no driver, or one that is too old; kUnavailable: others hold it.
StatusOr<std::unique_ptr<Driver>> OpenCudaDriver(int ordinal);

}  // namespace ag::cuda
