// Launches made ready, and the two ways to run them: captured into a graph, each after its parents,
// or sent directly to the plan's streams. One thread at a time.
#pragma once

#include <memory>
#include <vector>

#include "device/api/device.h"
#include "device/cuda/launch/cache_eviction.h"
#include "device/cuda/launch/group_kernel.h"
#include "device/cuda/launch/launch_order.h"

namespace ag::cuda {

struct ReadyLaunch {
  OrderedLaunch order;
  std::string kernel_name;
  std::unique_ptr<GroupKernel> kernel;
  std::vector<const std::byte*> inputs;
  std::vector<std::byte*> outputs;
  std::byte* workspace = nullptr;

  // Sends the work to `stream`.
  Status Enqueue(StreamRef stream, bool is_early) const;
};

// A graph that can be replayed, with the nodes of each launch, in launch order.
struct CapturedGraph {
  OwnedGraph graph;
  OwnedReplay replay;
  std::vector<std::vector<NodeInfo>> nodes;
  int early_edges = 0;
};

struct CaptureOptions {
  int copies = 1;  // How often the launches are captured, each copy after the one before.
  bool early_launch = false;  // For launches that have one parent and wait by themselves.
  // Prepared; sent before each copy, after all of the copy before.
  CacheEviction* eviction = nullptr;
};

// Captures the launches; runs nothing on `stream`. Without launches the copies are only evictions.
// kUnimplemented: a node allocates memory.
StatusOr<CapturedGraph> Capture(Driver& driver, StreamRef stream,
                                const std::vector<ReadyLaunch>& launches,
                                const CaptureOptions& options);

// Runs the launches without capture: launch i in streams[launch.order.stream], after its parents in
// other streams. Returns when all have ended. Fills `trace` when given.
Status RunDirectly(Driver& driver, const std::vector<OwnedStream>& streams,
                   const std::vector<ReadyLaunch>& launches, std::vector<TraceEvent>* trace);

}  // namespace ag::cuda
