// A device from a text file: times by the spec's rates, outputs by the reference kernels, faults on
// request. Deterministic: the same spec text gives the same sequence of times. docs/devices.md
// lists the spec lines that only this device reads (fault, noise, drift, seed). The device is used
// by one thread at a time.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "device/api/device.h"

namespace ag {

// Opens a simulated device. `text` is a spec, or a recording (plan/format/recording.h), which
// contains its device's spec. A spec's line "recording FILE" names one; a relative path is looked
// for in `folder`.
//
// With a recording, recorded groups take their recorded times, each kernel its own. Other groups
// are estimated by the spec's roofline, corrected by similar recorded groups, and their only kernel
// is kEstimatedKernel; so Kernels tells which groups were recorded.
//
// kInvalidArgument names the line of a text that does not parse, or of a fault that has no effect.
//
// Executable::Run computes the outputs on the reference kernels. Time only asks the model and
// leaves the outputs unchanged, so timing a large network is cheap. From evicted caches it gives
// the time of the same groups as cold problems; a spec with "cold_cache no" has none.
StatusOr<std::unique_ptr<Device>> OpenSimDevice(std::string_view text,
                                                const std::string& folder = ".");

}  // namespace ag
