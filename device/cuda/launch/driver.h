// The calls of the CUDA runtime that running a plan needs, as a seam: one implementation is the
// real runtime (device/cuda/cuda_driver.h), others stand in for it where no GPU is (recording.h,
// host_driver.h). A Driver belongs to one thread at a time; everything that it hands out must be
// given back before it ends.
//
// Errors: kResourceExhausted for memory, with the bytes; kUnavailable with "sticky" in the message
// when the context is lost (illegal address, launch failure): nothing works in this process any
// more; kInternal for any other code of the library, by its name.
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

// Handles of the library, borrowed; the driver that made them gives them back.
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
  // May begin before the kernel before it in the stream has ended (programmatic dependent launch);
  // it waits by itself before its first access to what that one wrote or reads.
  bool is_early = false;
};

// What a node of a captured graph is, for inspection.
enum class NodeKind : uint8_t { kKernel, kCopy, kFill, kMemory, kOther };
struct NodeInfo {
  NodeRef node = nullptr;
  NodeKind kind = NodeKind::kOther;
  std::string function;                   // Of a kernel, "" where it cannot be had.
  std::array<uint32_t, 3> grid{0, 0, 0};  // Of a kernel.
  std::array<uint32_t, 3> block{0, 0, 0};
  uint32_t shared_bytes = 0;
};

// An edge into what is captured next. `is_early`: the successor may begin when all blocks of `from`
// have said so or ended (a programmatic edge); both must be kernels.
struct NodeEdge {
  NodeRef from = nullptr;
  bool is_early = false;
};

class Driver {
 public:
  virtual ~Driver() = default;

  // Memory, aligned to 256 bytes. Copies are ordered in the stream; the host's side may be used
  // again when the call returns. Free waits for all work that was sent, as cudaFree does.
  virtual StatusOr<std::byte*> Allocate(int64_t bytes) = 0;
  virtual void Free(std::byte* memory) = 0;
  virtual Status Upload(std::byte* to, std::span<const std::byte> from, StreamRef stream) = 0;
  virtual Status Download(std::span<std::byte> to, const std::byte* from, StreamRef stream) = 0;
  virtual Status Fill(std::byte* to, uint8_t value, int64_t bytes, StreamRef stream) = 0;

  // Code: an image as the compiler gives it (a cubin).
  virtual StatusOr<ModuleRef> LoadModule(std::string_view image) = 0;
  virtual void UnloadModule(ModuleRef module) = 0;
  // Allows the function the dynamic shared memory; 0: the default of 48 KiB.
  virtual StatusOr<FunctionRef> FindFunction(ModuleRef module, const std::string& name,
                                             uint32_t shared_bytes) = 0;
  virtual Status Launch(const KernelLaunch& launch, StreamRef stream) = 0;

  // Streams and events. `priority`: 0 is the least urgent, greater is more urgent.
  virtual StatusOr<StreamRef> MakeStream(int priority) = 0;
  virtual void FreeStream(StreamRef stream) = 0;
  virtual Status Synchronize(StreamRef stream) = 0;
  virtual StatusOr<EventRef> MakeEvent() = 0;
  virtual void FreeEvent(EventRef event) = 0;
  virtual Status Record(EventRef event, StreamRef stream) = 0;
  virtual Status Wait(StreamRef stream, EventRef event) = 0;  // What follows waits for the event.
  virtual StatusOr<Nanos> Between(EventRef begin, EventRef end) = 0;  // Waits for `end`.

  // Graphs. What is sent to `stream` between BeginCapture and EndCapture becomes nodes of `graph`
  // that come after `from`; EndCapture returns the nodes that nothing captured since depends on.
  virtual StatusOr<GraphRef> MakeGraph() = 0;
  virtual void FreeGraph(GraphRef graph) = 0;
  virtual Status BeginCapture(StreamRef stream, GraphRef graph, std::span<const NodeEdge> from) = 0;
  virtual StatusOr<std::vector<NodeRef>> EndCapture(StreamRef stream) = 0;
  virtual StatusOr<std::vector<NodeRef>> Nodes(GraphRef graph) = 0;  // All, in no certain order.
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
