// The calls of the CUDA runtime that running a plan needs, as an interface:
// device/cuda/cuda_driver.h is the real runtime, host_driver.h stands in for it where no GPU is.
// One thread at a time. All handles must be given back before the driver ends.
//
// Errors: kResourceExhausted for memory, with the bytes; LostDevice when the context is lost
// (illegal address, launch failure) and nothing works in this process any more; kInternal with the
// name of any other code.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace ag::cuda {

// Handles of the library, borrowed; the driver that made them frees them.
using StreamRef = struct StreamTag*;      // cudaStream_t
using EventRef = struct EventTag*;        // cudaEvent_t
using GraphRef = struct GraphTag*;        // cudaGraph_t
using NodeRef = struct NodeTag*;          // cudaGraphNode_t
using ReplayRef = struct ReplayTag*;      // cudaGraphExec_t
using ModuleRef = struct ModuleTag*;      // cudaLibrary_t
using FunctionRef = struct FunctionTag*;  // cudaKernel_t

// One launch of a kernel. Every argument is a pointer into device memory.
struct KernelLaunch {
  FunctionRef function = nullptr;
  std::array<uint32_t, 3> grid{1, 1, 1};   // Blocks, x first.
  std::array<uint32_t, 3> block{1, 1, 1};  // Threads.
  uint32_t shared_bytes = 0;               // Dynamic shared memory.
  std::vector<const void*> arguments;
  // The kernel may begin before the one before it in the stream has ended (programmatic dependent
  // launch); it waits by itself before its first access to memory that that one reads or writes.
  bool is_early = false;
};

// A description of a node of a captured graph.
enum class NodeKind : uint8_t { kKernel, kCopy, kFill, kMemory, kOther };
struct NodeInfo {
  NodeRef node = nullptr;
  NodeKind kind = NodeKind::kOther;
  std::string function;                   // Of a kernel; "" when unknown.
  std::array<uint32_t, 3> grid{0, 0, 0};  // Of a kernel.
  std::array<uint32_t, 3> block{0, 0, 0};
  uint32_t shared_bytes = 0;
};

// An edge to the next captured node. `is_early`: the successor may begin when all blocks of `from`
// have allowed it or ended (a programmatic edge); both must be kernels.
struct NodeEdge {
  NodeRef from = nullptr;
  bool is_early = false;
};

class Driver {
 public:
  virtual ~Driver() = default;

  // Memory, aligned to 256 bytes. Copies are ordered in the stream; the host's memory may be reused
  // when the call returns. Free waits for all work that was sent, like cudaFree.
  virtual StatusOr<std::byte*> Allocate(int64_t bytes) = 0;
  virtual void Free(std::byte* memory) = 0;
  virtual Status Upload(std::byte* to, std::span<const std::byte> from, StreamRef stream) = 0;
  virtual Status Download(std::span<std::byte> to, const std::byte* from, StreamRef stream) = 0;
  virtual Status Fill(std::byte* to, uint8_t value, int64_t bytes, StreamRef stream) = 0;

  // Code. An image is the compiler's output (a cubin).
  virtual StatusOr<ModuleRef> LoadModule(std::string_view image) = 0;
  virtual void UnloadModule(ModuleRef module) = 0;
  // Returns a function and allows it the dynamic shared memory; 0: the default of 48 KiB.
  virtual StatusOr<FunctionRef> FindFunction(ModuleRef module, const std::string& name,
                                             uint32_t shared_bytes) = 0;
  virtual Status Launch(const KernelLaunch& launch, StreamRef stream) = 0;

  // Streams and events. `priority`: 0 is the least urgent, larger is more urgent.
  virtual StatusOr<StreamRef> MakeStream(int priority) = 0;
  virtual void FreeStream(StreamRef stream) = 0;
  virtual Status Synchronize(StreamRef stream) = 0;
  virtual StatusOr<EventRef> MakeEvent() = 0;
  virtual void FreeEvent(EventRef event) = 0;
  virtual Status Record(EventRef event, StreamRef stream) = 0;
  virtual Status Wait(StreamRef stream, EventRef event) = 0;  // Later work waits for the event.
  virtual StatusOr<Nanos> Between(EventRef begin, EventRef end) = 0;  // Waits for `end`.

  // Graphs. Work that is sent to `stream` between BeginCapture and EndCapture becomes nodes of
  // `graph` that come after `from`; EndCapture returns those of them that no other of them depends
  // on.
  virtual StatusOr<GraphRef> MakeGraph() = 0;
  virtual void FreeGraph(GraphRef graph) = 0;
  virtual Status BeginCapture(StreamRef stream, GraphRef graph, std::span<const NodeEdge> from) = 0;
  virtual StatusOr<std::vector<NodeRef>> EndCapture(StreamRef stream) = 0;
  virtual StatusOr<std::vector<NodeRef>> Nodes(GraphRef graph) = 0;  // All, in any order.
  virtual StatusOr<NodeInfo> Inspect(NodeRef node) = 0;
  virtual Status SetPriority(NodeRef node, int priority) = 0;  // Of a kernel node.
  virtual StatusOr<ReplayRef> Instantiate(GraphRef graph) = 0;
  virtual void FreeReplay(ReplayRef replay) = 0;
  virtual Status Prepare(ReplayRef replay, StreamRef stream) = 0;  // Uploads it, once.
  virtual Status Replay(ReplayRef replay, StreamRef stream) = 0;
};

// Owns one handle of a driver: Owned<StreamRef, &Driver::FreeStream>. Move-only.
template <class Ref, void (Driver::*kFree)(Ref)>
class Owned {
 public:
  Owned() = default;
  Owned(Driver& driver, Ref ref) : driver_(&driver), ref_(ref) {}
  Owned(Owned&& other) noexcept : driver_(other.driver_), ref_(other.release()) {}
  Owned& operator=(Owned&& other) noexcept {
    if (this == &other) return *this;
    reset();
    driver_ = other.driver_;
    ref_ = other.release();
    return *this;
  }
  ~Owned() { reset(); }

  Ref get() const { return ref_; }
  Ref release() {
    const Ref ref = ref_;
    ref_ = nullptr;
    return ref;
  }
  void reset() {
    if (ref_ != nullptr) (driver_->*kFree)(release());
  }

 private:
  Driver* driver_ = nullptr;
  Ref ref_ = nullptr;
};
using OwnedMemory = Owned<std::byte*, &Driver::Free>;
using OwnedModule = Owned<ModuleRef, &Driver::UnloadModule>;
using OwnedStream = Owned<StreamRef, &Driver::FreeStream>;
using OwnedEvent = Owned<EventRef, &Driver::FreeEvent>;
using OwnedGraph = Owned<GraphRef, &Driver::FreeGraph>;
using OwnedReplay = Owned<ReplayRef, &Driver::FreeReplay>;

}  // namespace ag::cuda
