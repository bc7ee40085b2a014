// Launches made ready, and the two ways to send them: into a graph, each after its parents, and
// directly into the plan's streams.
#pragma once

#include <memory>
#include <vector>

#include "device/api/device.h"
#include "device/cuda/launch/cache_flush.h"
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

// A graph that can be replayed, with the nodes that each launch became, in launch order.
struct CapturedGraph {
  OwnedGraph graph;
  OwnedReplay replay;
  std::vector<std::vector<NodeInfo>> nodes;
  int early_edges = 0;
};

struct CaptureOptions {
  int copies = 1;               // The launches so often, one whole after the other.
  bool early_launch = false;    // Where a launch has one parent and waits by itself.
  CacheFlush* flush = nullptr;  // Prepared; sent before each copy, after all of the one before.
};

// `stream` is only captured from, nothing runs. Without launches the copies are flushes alone.
// kUnimplemented: a node that allocates.
StatusOr<CapturedGraph> Capture(Driver& driver, StreamRef stream,
                                const std::vector<ReadyLaunch>& launches,
                                const CaptureOptions& options);

// Runs the launches uncaptured: launch i in streams[launch.order.stream], after its parents on
// other streams. Returns when all have ended. Fills `trace` when it is given.
Status RunDirectly(Driver& driver, const std::vector<OwnedStream>& streams,
                   const std::vector<ReadyLaunch>& launches, std::vector<TraceEvent>* trace);

}  // namespace ag::cuda
