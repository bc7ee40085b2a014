// A device from a text file: times by the spec's rates, numbers by the reference kernels, faults on
// request. Deterministic: the same spec text gives the same sequence of times. docs/devices.md
// lists the lines of a spec that only this device reads (fault, noise, drift, seed).
#pragma once

#include <memory>
#include <string_view>

#include "device/api/device.h"

namespace ag {

// kInvalidArgument with the line for a spec that does not parse or a fault line that says nothing.
//
// Executable::Run computes the outputs on the reference kernels. TimedRun and TracedRun answer from
// the model alone and leave the outputs as they are: timing a large network costs nothing.
StatusOr<std::unique_ptr<Device>> OpenSimDevice(std::string_view spec_text);

}  // namespace ag
