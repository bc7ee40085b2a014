// Helpers for tests of this room: groups from text, host memory in the place of a device's, and the
// stand-in of the CUDA driver.
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "base/file.h"
#include "device/cuda/launch/group_kernel.h"
#include "graph/text_form.h"
#include "plan/testing.h"

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

// deploy/devices/<name>.deviceprop.json.
inline std::string DevicePropertiesText(const std::string& name) {
  return *ReadFile(std::string(AG_SOURCE_DIR) + "/deploy/devices/" + name + ".deviceprop.json");
}

// Loads the stand-in (stand_in/driver.cc) where there is no driver. Call before the first use of a
// library in the process. False: there is neither.
inline bool HasDriverOrStandIn() {
  static const bool has = [] {
    if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL) != nullptr) return true;
    return dlopen(AG_DRIVER_STAND_IN, RTLD_NOW | RTLD_GLOBAL) != nullptr;
  }();
  return has;
}

// A driver that has memory, which is the host's, and nothing else.
class HostMemory : public Driver {
 public:
  StatusOr<std::byte*> Allocate(int64_t bytes) override {
    const size_t rounded = (static_cast<size_t>(bytes) + 255) / 256 * 256;
    return static_cast<std::byte*>(std::aligned_alloc(256, rounded));
  }
  void Free(std::byte* memory) override { std::free(memory); }
  Status Upload(std::byte* to, std::span<const std::byte> from, StreamRef) override {
    std::memcpy(to, from.data(), from.size());
    return OkStatus();
  }
  Status Download(std::span<std::byte> to, const std::byte* from, StreamRef) override {
    std::memcpy(to.data(), from, to.size());
    return OkStatus();
  }
  Status Fill(std::byte* to, uint8_t value, int64_t bytes, StreamRef) override {
    std::memset(to, value, bytes);
    return OkStatus();
  }
  StatusOr<ModuleRef> LoadModule(std::string_view) override { return None(); }
  void UnloadModule(ModuleRef) override {}
  StatusOr<FunctionRef> FindFunction(ModuleRef, const std::string&, uint32_t) override {
    return None();
  }
  Status Launch(const KernelLaunch&, StreamRef) override { return None(); }
  StatusOr<StreamRef> MakeStream(int) override { return None(); }
  void FreeStream(StreamRef) override {}
  Status Synchronize(StreamRef) override { return OkStatus(); }
  StatusOr<EventRef> MakeEvent() override { return None(); }
  void FreeEvent(EventRef) override {}
  Status Record(EventRef, StreamRef) override { return None(); }
  Status Wait(StreamRef, EventRef) override { return None(); }
  StatusOr<Nanos> Between(EventRef, EventRef) override { return None(); }
  StatusOr<GraphRef> MakeGraph() override { return None(); }
  void FreeGraph(GraphRef) override {}
  Status BeginCapture(StreamRef, GraphRef, std::span<const NodeEdge>) override { return None(); }
  StatusOr<std::vector<NodeRef>> EndCapture(StreamRef) override { return None(); }
  StatusOr<std::vector<NodeRef>> Nodes(GraphRef) override { return None(); }
  StatusOr<NodeInfo> Inspect(NodeRef) override { return None(); }
  Status SetPriority(NodeRef, int) override { return None(); }
  StatusOr<ReplayRef> Instantiate(GraphRef) override { return None(); }
  void FreeReplay(ReplayRef) override {}
  Status Prepare(ReplayRef, StreamRef) override { return None(); }
  Status Replay(ReplayRef, StreamRef) override { return None(); }

 private:
  static Status None() { return Err(StatusCode::kUnimplemented, "host memory runs nothing"); }
};

}  // namespace ag::cuda
