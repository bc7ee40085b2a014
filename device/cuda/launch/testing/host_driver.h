// A driver without a GPU, for tests: device memory is the host's, kernels are functions of the
// host. A seed decides what streams, events and edges leave open: work of different streams runs in
// a random order, and so do the nodes of a graph as far as its edges allow. So a missing wait or
// edge gives a wrong result sooner or later. Time is virtual: each kernel takes 1000 ns. One thread
// at a time.
//
// Every allocation begins as bytes of 0xFF (a NaN in every float type) and lies between guards that
// CheckGuards checks. Any call can be made to fail.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>

#include "base/random.h"
#include "device/cuda/launch/driver.h"

namespace ag::cuda {

class HostDriver : public Driver {
 public:
  using Function = std::function<Status(const KernelLaunch& launch)>;
  struct Options {
    // Returns function `name` of a module's image. Null: no module can be loaded.
    std::function<StatusOr<Function>(const std::string& image, const std::string& name)> find;
    uint64_t seed = 1;
    int fail_at = -1;       // The number of the call that fails, from 0; -1: none.
    Nanos early_gain{500};  // The time that a replay saves for each node that begins early.
    std::function<Nanos(int fill)> fill_time;  // Of the n-th fill, from 0; null: none.
    bool keep_work = false;                    // Fills work().
  };
  explicit HostDriver(Options options);
  ~HostDriver() override;

  int calls() const { return calls_; }  // Calls so far that could fail.
  int live() const;                     // Handles and allocations that were not given back.
  int launches() const { return launches_; }
  const std::vector<std::string>& log() const { return log_; }  // Graph calls, in order.
  // Returns kernels and fills in the order in which they ran: "softmax", "fill 4096".
  const std::vector<std::string>& work() const { return work_; }
  Status CheckGuards() const;  // kDataLoss: something beside an allocation was written.

  StatusOr<std::byte*> Allocate(int64_t bytes) override;
  void Free(std::byte* memory) override;
  Status Upload(std::byte* to, std::span<const std::byte> from, StreamRef stream) override;
  Status Download(std::span<std::byte> to, const std::byte* from, StreamRef stream) override;
  Status Fill(std::byte* to, uint8_t value, int64_t bytes, StreamRef stream) override;
  StatusOr<ModuleRef> LoadModule(std::string_view image) override;
  void UnloadModule(ModuleRef module) override;
  StatusOr<FunctionRef> FindFunction(ModuleRef module, const std::string& name,
                                     uint32_t shared_bytes) override;
  Status Launch(const KernelLaunch& launch, StreamRef stream) override;
  StatusOr<StreamRef> MakeStream(int priority) override;
  void FreeStream(StreamRef stream) override;
  Status Synchronize(StreamRef stream) override;
  StatusOr<EventRef> MakeEvent() override;
  void FreeEvent(EventRef event) override;
  Status Record(EventRef event, StreamRef stream) override;
  Status Wait(StreamRef stream, EventRef event) override;
  StatusOr<Nanos> Between(EventRef begin, EventRef end) override;
  StatusOr<GraphRef> MakeGraph() override;
  void FreeGraph(GraphRef graph) override;
  Status BeginCapture(StreamRef stream, GraphRef graph, std::span<const NodeEdge> from) override;
  StatusOr<std::vector<NodeRef>> EndCapture(StreamRef stream) override;
  StatusOr<std::vector<NodeRef>> Nodes(GraphRef graph) override;
  StatusOr<NodeInfo> Inspect(NodeRef node) override;
  Status SetPriority(NodeRef node, int priority) override;
  StatusOr<ReplayRef> Instantiate(GraphRef graph) override;
  void FreeReplay(ReplayRef replay) override;
  Status Prepare(ReplayRef replay, StreamRef stream) override;
  Status Replay(ReplayRef replay, StreamRef stream) override;

 private:
  struct Allocation;
  struct Module;
  struct FunctionInfo;
  struct Event;
  struct Node;
  struct Graph;
  struct Work;
  struct Stream;

  void Keep(const std::string& work) {
    if (options_.keep_work) work_.push_back(work);
  }
  Status Count(const char* call);  // Returns the injected failure when it is this call's turn.
  Status Send(StreamRef stream, Work work);
  Status RunNodes(const Graph& graph);
  Status Step(Stream& stream, bool* moved);  // Runs its first piece of work, unless that waits.

  Options options_;
  Random random_;
  Status error_;  // The error of work that ran later than it was sent, as on a GPU.
  Nanos now_{0};
  int calls_ = 0, launches_ = 0, fills_ = 0;
  std::vector<std::string> log_, work_;
  std::map<std::byte*, std::unique_ptr<Allocation>> memory_;
  std::set<std::unique_ptr<Module>> modules_;
  // Sent work keeps its event or replay after that is freed, as with the real driver.
  std::map<EventRef, std::shared_ptr<Event>> events_;
  std::map<ReplayRef, std::shared_ptr<Graph>> replays_;  // Copies of graphs.
  std::set<std::unique_ptr<Graph>> graphs_;
  std::map<StreamRef, std::unique_ptr<Stream>> streams_;
};

}  // namespace ag::cuda
