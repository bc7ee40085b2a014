// Helpers for tests of this room: groups from text, host memory instead of a device's, and the
// stub of the CUDA driver. One thread at a time.
#pragma once

#include <dlfcn.h>

#include <string>

#include "base/file.h"
#include "device/cuda/launch/group_kernel.h"
#include "device/cuda/launch/testing/host_driver.h"
#include "graph/text_form.h"
#include "plan/fusion/grouping.h"
#include "plan/testing/testing.h"

namespace ag::cuda {

// The first group of a text that is neither a reorder nor a view, as the device's spec forms it.
struct TextGroup {
  explicit TextGroup(std::string_view text, Precision precision = Precision::kFp16)
      : graph(*ParseGraph(text, &weights)) {
    const DeviceSpec spec = LoadSpec(AG_SOURCE_DIR, "h200");
    RooflineTimes times(spec);
    const std::vector<Group> all = *FormGroups(graph, spec, Policy(), times);
    for (const Group& formed : all) {
      if (!formed.nodes.empty() && formed.pattern != kViewPattern && group.nodes.empty()) {
        group = formed;
      }
    }
    this->precision = precision;
  }
  GroupContext context() const { return {graph, group, precision, chip}; }

  MemoryWeights weights;
  Graph graph;
  Group group;
  Chip chip;
  Precision precision;
};

// Returns the text of deploy/devices/<name>.deviceprop.json.
inline std::string DevicePropertiesText(const std::string& name) {
  return *ReadFile(std::string(AG_SOURCE_DIR) + "/deploy/devices/" + name + ".deviceprop.json");
}

// Loads the stub (stub_driver/driver.cc) where there is no driver. Returns false when there is
// neither. Call it before the first use of a library in the process.
inline bool HasDriverOrStub() {
  static const bool has = [] {
    if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL) != nullptr) return true;
    return dlopen(AG_STUB_DRIVER, RTLD_NOW | RTLD_GLOBAL) != nullptr;
  }();
  return has;
}

// Host memory for a kernel's weights.
struct HostWeights {
  // Waits for the copies. Call it before the weights are read.
  void Wait() { AG_CHECK(driver.Synchronize(stream).ok()); }

  HostDriver driver{{}};
  StreamRef stream = *driver.MakeStream(0);
  WeightMemory memory{driver, stream};
};

}  // namespace ag::cuda
