// A device from a text file: times by the spec's rates, numbers by the reference kernels, faults on
// request. Deterministic: the same spec text gives the same sequence of times. docs/devices.md
// lists the lines of a spec that only this device reads (fault, noise, drift, seed).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "device/api/device.h"

namespace ag {

// `text` is a spec, or a recording (plan/recording.h) that holds its device's spec. A spec's line
// "recording FILE" names one, looked for in `folder` when the path is relative.
//
// With a recording, recorded groups take their recorded times, each kernel its own; the others are
// estimated by the spec's roofline, corrected by what was recorded of groups like them, and their
// only kernel is kEstimatedKernel: so Kernels says which groups were recorded.
//
// kInvalidArgument with the line for a text that does not parse or a fault line that says nothing.
//
// Executable::Run computes the outputs on the reference kernels. TimedRun and TracedRun answer from
// the model alone and leave the outputs as they are: timing a large network costs nothing.
// ColdRunNs answers for the same groups as cold problems; a spec with "cold_cache no" has none.
StatusOr<std::unique_ptr<Device>> OpenSimDevice(std::string_view text,
                                                const std::string& folder = ".");

}  // namespace ag
