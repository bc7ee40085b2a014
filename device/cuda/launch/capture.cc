#include "device/cuda/launch/capture.h"

#include <algorithm>
#include <map>
#include <set>

namespace ag::cuda {
namespace {

class Capturer {
 public:
  Capturer(Driver& driver, StreamRef stream, const std::vector<ReadyLaunch>& launches,
           const CaptureOptions& options)
      : driver_(driver), stream_(stream), launches_(launches), options_(options) {}

  StatusOr<CapturedGraph> Run() {
    AG_LET(const GraphRef graph, driver_.MakeGraph());
    captured_.graph = OwnedGraph(driver_, graph);
    std::vector<NodeRef> before;  // The nodes that end last of all captured so far.
    for (int copy = 0; copy < options_.copies; ++copy) {
      if (options_.eviction != nullptr) {
        AG_LET(before, AddEviction(before));
      }
      for (const ReadyLaunch& launch : launches_) {
        AG_TRY(Add(launch, before, copy), "group {}", launch.order.group);
      }
      if (!launches_.empty()) before = Ends();
    }
    AG_LET(const ReplayRef replay, driver_.Instantiate(graph));
    captured_.replay = OwnedReplay(driver_, replay);
    AG_TRY(driver_.Prepare(replay, stream_));
    return std::move(captured_);
  }

 private:
  // Returns the end nodes of the last copy.
  std::vector<NodeRef> Ends() const {
    std::set<int> parents;
    for (const ReadyLaunch& launch : launches_) {
      parents.insert(launch.order.parents.begin(), launch.order.parents.end());
    }
    std::vector<NodeRef> nodes;
    for (const auto& [group, own] : ends_) {
      if (!parents.contains(group)) nodes.insert(nodes.end(), own.begin(), own.end());
    }
    return nodes;
  }

  StatusOr<std::vector<NodeRef>> AddEviction(const std::vector<NodeRef>& before) {
    std::vector<NodeEdge> edges;
    for (const NodeRef node : before) edges.push_back({node, false});
    AG_TRY(driver_.BeginCapture(stream_, captured_.graph.get(), edges));
    const Status sent = options_.eviction->Enqueue(stream_);
    StatusOr<std::vector<NodeRef>> ends = driver_.EndCapture(stream_);  // After an error as well.
    AG_TRY(sent, "eviction");
    AG_TRY(ends);
    AG_LET(const std::vector<NodeRef> all, driver_.Nodes(captured_.graph.get()));
    seen_.insert(all.begin(), all.end());
    return *std::move(ends);
  }

  Status Add(const ReadyLaunch& launch, const std::vector<NodeRef>& before, int copy) {
    std::vector<NodeEdge> edges;
    if (launch.order.parents.empty()) {
      for (const NodeRef node : before) edges.push_back({node, false});
    }
    for (const int parent : launch.order.parents) {
      for (const NodeRef node : ends_.at(parent)) {
        const NodeEdge edge{node, false};
        if (std::ranges::find(edges, node, &NodeEdge::from) == edges.end()) edges.push_back(edge);
      }
    }
    // A node never gets edges of both kinds.
    const bool is_early = options_.early_launch && launch.kernel->can_begin_early() &&
                          edges.size() == 1 && kernels_.contains(edges[0].from);
    if (is_early) edges[0].is_early = true;
    AG_TRY(driver_.BeginCapture(stream_, captured_.graph.get(), edges));
    const Status sent = launch.Enqueue(stream_, is_early);
    StatusOr<std::vector<NodeRef>> ends = driver_.EndCapture(stream_);  // After an error as well.
    AG_TRY(sent);
    AG_TRY(ends);
    ends_[launch.order.group] = *std::move(ends);
    captured_.early_edges += is_early ? 1 : 0;
    return Inspect(launch, copy);
  }

  // Looks at the nodes that are new since the last launch.
  Status Inspect(const ReadyLaunch& launch, int copy) {
    AG_LET(const std::vector<NodeRef> all, driver_.Nodes(captured_.graph.get()));
    std::vector<NodeInfo> own;
    for (const NodeRef node : all) {
      if (!seen_.insert(node).second) continue;
      AG_LET(const NodeInfo info, driver_.Inspect(node));
      if (info.kind == NodeKind::kMemory) {
        return Err(StatusCode::kUnimplemented, "kernel {}: allocates memory while it is captured",
                   launch.kernel_name);
      }
      if (info.kind == NodeKind::kKernel) {
        kernels_.insert(node);
        AG_TRY(driver_.SetPriority(node, launch.order.priority));
      }
      own.push_back(info);
    }
    if (copy == 0) captured_.nodes.push_back(std::move(own));
    return OkStatus();
  }

  Driver& driver_;
  StreamRef stream_;
  const std::vector<ReadyLaunch>& launches_;
  const CaptureOptions& options_;
  CapturedGraph captured_;
  std::map<int, std::vector<NodeRef>> ends_;  // By group.
  std::set<NodeRef> seen_, kernels_;
};

struct Events {
  OwnedEvent begin, end;
};

StatusOr<OwnedEvent> MakeEvent(Driver& driver) {
  AG_LET(const EventRef event, driver.MakeEvent());
  return OwnedEvent(driver, event);
}

}  // namespace

Status ReadyLaunch::Enqueue(StreamRef stream, bool is_early) const {
  AG_TRY(kernel->Enqueue(stream, {inputs, outputs, workspace}, is_early), "kernel {}", kernel_name);
  return OkStatus();
}

StatusOr<CapturedGraph> Capture(Driver& driver, StreamRef stream,
                                const std::vector<ReadyLaunch>& launches,
                                const CaptureOptions& options) {
  return Capturer(driver, stream, launches, options).Run();
}

Status RunDirectly(Driver& driver, const std::vector<OwnedStream>& streams,
                   const std::vector<ReadyLaunch>& launches, std::vector<TraceEvent>* trace) {
  std::map<int, Events> events;
  std::map<int, int> stream_of;
  AG_LET(const OwnedEvent start, MakeEvent(driver));
  AG_TRY(driver.Record(start.get(), streams[0].get()));
  for (const OwnedStream& stream : streams) AG_TRY(driver.Wait(stream.get(), start.get()));
  for (const ReadyLaunch& launch : launches) {
    const StreamRef stream = streams[launch.order.stream].get();
    for (const int parent : launch.order.parents) {
      if (stream_of.at(parent) == launch.order.stream) continue;
      AG_TRY(driver.Wait(stream, events.at(parent).end.get()));
    }
    Events& own = events[launch.order.group];
    AG_LET(own.begin, MakeEvent(driver));
    AG_LET(own.end, MakeEvent(driver));
    AG_TRY(driver.Record(own.begin.get(), stream));
    AG_TRY(launch.Enqueue(stream, false), "group {}", launch.order.group);
    AG_TRY(driver.Record(own.end.get(), stream));
    stream_of[launch.order.group] = launch.order.stream;
  }
  for (const OwnedStream& stream : streams) AG_TRY(driver.Synchronize(stream.get()));
  if (trace == nullptr) return OkStatus();
  for (const auto& [group, own] : events) {
    AG_LET(const Nanos begin, driver.Between(start.get(), own.begin.get()));
    AG_LET(const Nanos end, driver.Between(start.get(), own.end.get()));
    trace->push_back({group, stream_of[group], begin, end});
  }
  return OkStatus();
}

}  // namespace ag::cuda
