// Names of devices as users write them: "cpu", "cpu:2", "cuda:0", "sim:<file or built-in name>".
// Only parses names; device/open_device.h opens devices. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace ag {

struct DeviceName {
  enum class Kind { kCpu, kCuda, kSim };
  Kind kind = Kind::kCpu;
  int cores = 0;     // kCpu: cores to use; 0: all.
  int ordinal = 0;   // kCuda: the number of the GPU.
  std::string spec;  // kSim: path of a spec or recording (it has a '/' or ends with ".spec" or
                     // ".recording"), or a built-in name.

  bool operator==(const DeviceName&) const = default;
  std::string Text() const;  // Returns the canonical name, which parses to an equal one.
};

// Returns the parsed name. kInvalidArgument says what is wrong with `text` and lists the forms.
StatusOr<DeviceName> ParseDeviceName(std::string_view text);

// Returns true when `spec` of a kSim name is a file and not the name of a built-in spec.
bool IsSpecFile(std::string_view spec);

}  // namespace ag
