// Devices by name: "cpu", "cpu:CORES", "sim:NAME" of a shipped spec or "sim:FILE.spec", "cuda:N".
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "device/api/device.h"

namespace ag {

// kInvalidArgument: not a device name; the message lists the forms. kNotFound: no such spec.
// kUnimplemented: this build or machine lacks what the device needs, and the message says what.
StatusOr<std::unique_ptr<Device>> OpenDevice(const std::string& name);

}  // namespace ag
