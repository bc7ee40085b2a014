// Names of devices as people write them: "cpu", "cpu:2", "cuda:0", "sim:<file or shipped name>".
// Opening a device by its name is the worker's business; here is only what the words mean.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace ag {

struct DeviceName {
  enum class Kind { kCpu, kCuda, kSim };
  Kind kind = Kind::kCpu;
  int cores = 0;     // kCpu: cores to use; 0: all.
  int ordinal = 0;   // kCuda: which GPU.
  std::string spec;  // kSim: path of a spec or recording (it has a '/' or ends with ".spec" or
                     // ".recording"), or a shipped name.

  bool operator==(const DeviceName&) const = default;
  std::string Text() const;  // Canonical; parses back to an equal name.
};

// kInvalidArgument says what is wrong with `text` and which forms there are.
StatusOr<DeviceName> ParseDeviceName(std::string_view text);

// True when `spec` of a kSim name is a file rather than the name of a shipped spec.
bool IsSpecFile(std::string_view spec);

}  // namespace ag
