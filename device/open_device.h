// Opens devices by name: "cpu", "cpu:CORES", "sim:NAME" of a built-in spec or "sim:FILE.spec",
// "cuda:N". Thread-safe.
#pragma once

#include <memory>
#include <string>

#include "device/api/device.h"

namespace ag {

// Opens the device. kInvalidArgument: not a device name; the message lists the forms. kNotFound: no
// such spec. kUnimplemented: this build or machine lacks what the device needs; the message says
// what.
StatusOr<std::unique_ptr<Device>> OpenDevice(const std::string& name);

}  // namespace ag
