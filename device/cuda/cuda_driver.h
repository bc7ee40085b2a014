// The CUDA runtime behind launch/driver.h. An early launch has an attribute, which a capture turns
// into a programmatic edge. One thread at a time.
#pragma once

#include <memory>

#include "device/cuda/launch/driver.h"

namespace ag::cuda {

// Opens device `ordinal` in this process (makes the primary context). kNotFound: no such device;
// kUnimplemented: no driver, or one that is too old; kUnavailable: another process holds it.
StatusOr<std::unique_ptr<Driver>> OpenCudaDriver(int ordinal);

}  // namespace ag::cuda
