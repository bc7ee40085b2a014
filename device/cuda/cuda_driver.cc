#include "device/cuda/cuda_driver.h"

#include <cuda.h>

#include <algorithm>
#include <cmath>

#include "device/cuda/cuda_status.h"

namespace ag::cuda {
namespace {

// Each handle of the interface is one of the library's under another name.
cudaStream_t RawOf(StreamRef ref) { return reinterpret_cast<cudaStream_t>(ref); }
cudaEvent_t RawOf(EventRef ref) { return reinterpret_cast<cudaEvent_t>(ref); }
cudaGraph_t RawOf(GraphRef ref) { return reinterpret_cast<cudaGraph_t>(ref); }
cudaGraphNode_t RawOf(NodeRef ref) { return reinterpret_cast<cudaGraphNode_t>(ref); }
cudaGraphExec_t RawOf(ReplayRef ref) { return reinterpret_cast<cudaGraphExec_t>(ref); }
cudaLibrary_t RawOf(ModuleRef ref) { return reinterpret_cast<cudaLibrary_t>(ref); }

template <class Ref, class RawHandle>
Ref Wrap(RawHandle raw) {
  return reinterpret_cast<Ref>(raw);
}

// Calls of the driver for kernels that a library launched through the driver's own interface, which
// the runtime does not know. Null where the driver has no such call; names are then left out.
struct DriverCalls {
  CUresult (*kernel_node_params)(CUgraphNode, CUDA_KERNEL_NODE_PARAMS*) = nullptr;
  CUresult (*function_name)(const char**, CUfunction) = nullptr;
  CUresult (*kernel_name)(const char**, CUkernel) = nullptr;
};

template <class Call>
void FindCall(const char* name, Call* call) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  // The version that brought the last of these calls and the form of the node's parameters.
  constexpr unsigned int kVersion = 12030;
  const cudaError_t code =
      cudaGetDriverEntryPointByVersion(name, &address, kVersion, cudaEnableDefault, &found);
  if (code == cudaSuccess && found == cudaDriverEntryPointSuccess) {
    *call = reinterpret_cast<Call>(address);
  }
}

NodeKind KindOf(cudaGraphNodeType type) {
  switch (type) {
    case cudaGraphNodeTypeKernel:
      return NodeKind::kKernel;
    case cudaGraphNodeTypeMemcpy:
      return NodeKind::kCopy;
    case cudaGraphNodeTypeMemset:
      return NodeKind::kFill;
    case cudaGraphNodeTypeMemAlloc:
    case cudaGraphNodeTypeMemFree:
      return NodeKind::kMemory;
    default:
      return NodeKind::kOther;
  }
}

class CudaDriver : public Driver {
 public:
  Status Open(int ordinal);

  StatusOr<std::byte*> Allocate(int64_t bytes) override {
    AG_TRY(Use());
    void* memory = nullptr;
    AG_TRY(FromCuda(cudaMalloc(&memory, bytes), "allocate {} bytes", bytes));
    return static_cast<std::byte*>(memory);
  }
  void Free(std::byte* memory) override { Ignore(cudaFree(memory)); }
  Status Upload(std::byte* to, std::span<const std::byte> from, StreamRef stream) override {
    return FromCuda(
        cudaMemcpyAsync(to, from.data(), from.size(), cudaMemcpyHostToDevice, RawOf(stream)),
        "upload {} bytes", from.size());
  }
  Status Download(std::span<std::byte> to, const std::byte* from, StreamRef stream) override {
    return FromCuda(
        cudaMemcpyAsync(to.data(), from, to.size(), cudaMemcpyDeviceToHost, RawOf(stream)),
        "download {} bytes", to.size());
  }
  Status Fill(std::byte* to, uint8_t value, int64_t bytes, StreamRef stream) override {
    return FromCuda(cudaMemsetAsync(to, value, bytes, RawOf(stream)), "fill {} bytes", bytes);
  }

  StatusOr<ModuleRef> LoadModule(std::string_view image) override {
    AG_TRY(Use());
    cudaLibrary_t library = nullptr;
    AG_TRY(FromCuda(
        cudaLibraryLoadData(&library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
        "load an image of {} bytes", image.size()));
    return Wrap<ModuleRef>(library);
  }
  void UnloadModule(ModuleRef module) override { Ignore(cudaLibraryUnload(RawOf(module))); }
  StatusOr<FunctionRef> FindFunction(ModuleRef module, const std::string& name,
                                     uint32_t shared_bytes) override {
    AG_TRY(Use());
    cudaKernel_t kernel = nullptr;
    AG_TRY(FromCuda(cudaLibraryGetKernel(&kernel, RawOf(module), name.c_str()), "kernel {}", name));
    if (shared_bytes > 0) {
      AG_TRY(FromCuda(cudaFuncSetAttribute(static_cast<const void*>(kernel),
                                           cudaFuncAttributeMaxDynamicSharedMemorySize,
                                           static_cast<int>(shared_bytes)),
                      "kernel {}: {} bytes of shared memory", name, shared_bytes));
    }
    return Wrap<FunctionRef>(kernel);
  }
  Status Launch(const KernelLaunch& launch, StreamRef stream) override;

  StatusOr<StreamRef> MakeStream(int priority) override {
    AG_TRY(Use());
    cudaStream_t stream = nullptr;
    AG_TRY(FromCuda(
        cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, RawPriority(priority)),
        "make a stream"));
    return Wrap<StreamRef>(stream);
  }
  void FreeStream(StreamRef stream) override { Ignore(cudaStreamDestroy(RawOf(stream))); }
  Status Synchronize(StreamRef stream) override {
    return FromCuda(cudaStreamSynchronize(RawOf(stream)), "wait for a stream");
  }
  StatusOr<EventRef> MakeEvent() override {
    AG_TRY(Use());
    cudaEvent_t event = nullptr;
    AG_TRY(FromCuda(cudaEventCreate(&event), "make an event"));
    return Wrap<EventRef>(event);
  }
  void FreeEvent(EventRef event) override { Ignore(cudaEventDestroy(RawOf(event))); }
  Status Record(EventRef event, StreamRef stream) override {
    return FromCuda(cudaEventRecord(RawOf(event), RawOf(stream)), "record an event");
  }
  Status Wait(StreamRef stream, EventRef event) override {
    return FromCuda(cudaStreamWaitEvent(RawOf(stream), RawOf(event), 0), "wait for an event");
  }
  StatusOr<Nanos> Between(EventRef begin, EventRef end) override {
    AG_TRY(FromCuda(cudaEventSynchronize(RawOf(end)), "wait for an event"));
    float milliseconds = 0;
    AG_TRY(FromCuda(cudaEventElapsedTime(&milliseconds, RawOf(begin), RawOf(end)), "read a time"));
    return Nanos(std::llround(static_cast<double>(milliseconds) * 1e6));
  }

  StatusOr<GraphRef> MakeGraph() override {
    AG_TRY(Use());
    cudaGraph_t graph = nullptr;
    AG_TRY(FromCuda(cudaGraphCreate(&graph, 0), "make a graph"));
    return Wrap<GraphRef>(graph);
  }
  void FreeGraph(GraphRef graph) override { Ignore(cudaGraphDestroy(RawOf(graph))); }
  Status BeginCapture(StreamRef stream, GraphRef graph, std::span<const NodeEdge> from) override;
  StatusOr<std::vector<NodeRef>> EndCapture(StreamRef stream) override;
  StatusOr<std::vector<NodeRef>> Nodes(GraphRef graph) override;
  StatusOr<NodeInfo> Inspect(NodeRef node) override;
  Status SetPriority(NodeRef node, int priority) override {
    cudaLaunchAttributeValue value{};
    value.priority = RawPriority(priority);
    return FromCuda(
        cudaGraphKernelNodeSetAttribute(RawOf(node), cudaLaunchAttributePriority, &value),
        "set a node's priority");
  }
  StatusOr<ReplayRef> Instantiate(GraphRef graph) override {
    AG_TRY(Use());
    cudaGraphExec_t replay = nullptr;
    AG_TRY(FromCuda(
        cudaGraphInstantiate(&replay, RawOf(graph), cudaGraphInstantiateFlagUseNodePriority),
        "instantiate a graph"));
    return Wrap<ReplayRef>(replay);
  }
  void FreeReplay(ReplayRef replay) override { Ignore(cudaGraphExecDestroy(RawOf(replay))); }
  Status Prepare(ReplayRef replay, StreamRef stream) override {
    AG_TRY(Use());
    return FromCuda(cudaGraphUpload(RawOf(replay), RawOf(stream)), "upload a graph");
  }
  Status Replay(ReplayRef replay, StreamRef stream) override {
    AG_TRY(Use());
    return FromCuda(cudaGraphLaunch(RawOf(replay), RawOf(stream)), "replay a graph");
  }

 private:
  // Each thread has its own current device, and other code in the process may change it.
  Status Use() { return FromCuda(cudaSetDevice(ordinal_), "use device {}", ordinal_); }
  // Freeing also fails after the context is lost; the process ends then.
  static void Ignore(cudaError_t) {}
  // The library counts downwards from the least urgent.
  int RawPriority(int priority) const {
    return std::max(priority_most_, priority_least_ - priority);
  }

  DriverCalls calls_;
  int ordinal_ = 0;
  int priority_least_ = 0, priority_most_ = 0;
};

// The runtime has one code for a missing and for an old driver.
Status CheckDriver() {
  int driver = 0, runtime = 0;
  AG_TRY(FromCuda(cudaDriverGetVersion(&driver), "read the driver's version"));
  AG_TRY(FromCuda(cudaRuntimeGetVersion(&runtime), "read the runtime's version"));
  if (driver == 0) return Err(StatusCode::kUnimplemented, "no NVIDIA driver here: install it");
  if (driver / 1000 >= runtime / 1000) return OkStatus();
  return Err(StatusCode::kUnimplemented,
             "the NVIDIA driver speaks CUDA {}.{}, CUDA {} or newer is needed: update it",
             driver / 1000, driver % 1000 / 10, runtime / 1000);
}

Status CudaDriver::Open(int ordinal) {
  AG_TRY(CheckDriver());
  int count = 0;
  AG_TRY(FromCuda(cudaGetDeviceCount(&count), "count the devices"));
  if (ordinal < 0 || ordinal >= count) {
    return Err(StatusCode::kNotFound, "there are {} devices here, counted from 0", count);
  }
  ordinal_ = ordinal;
  AG_TRY(Use());
  AG_TRY(FromCuda(cudaDeviceGetStreamPriorityRange(&priority_least_, &priority_most_),
                  "read the priorities"));
  FindCall("cuGraphKernelNodeGetParams", &calls_.kernel_node_params);
  FindCall("cuFuncGetName", &calls_.function_name);
  FindCall("cuKernelGetName", &calls_.kernel_name);
  return OkStatus();
}

Status CudaDriver::Launch(const KernelLaunch& launch, StreamRef stream) {
  AG_TRY(Use());
  cudaLaunchConfig_t config{};
  config.gridDim = {launch.grid[0], launch.grid[1], launch.grid[2]};
  config.blockDim = {launch.block[0], launch.block[1], launch.block[2]};
  config.dynamicSmemBytes = launch.shared_bytes;
  config.stream = RawOf(stream);
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  if (launch.is_early) {
    config.attrs = &early;
    config.numAttrs = 1;
  }
  std::vector<const void*> pointers = launch.arguments;
  std::vector<void*> arguments;  // The library takes the address of each argument.
  for (const void*& pointer : pointers) arguments.push_back(&pointer);
  return FromCuda(cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(launch.function),
                                      arguments.data()),
                  "launch {}x{}x{} blocks of {} threads", launch.grid[0], launch.grid[1],
                  launch.grid[2], launch.block[0] * launch.block[1] * launch.block[2]);
}

Status CudaDriver::BeginCapture(StreamRef stream, GraphRef graph, std::span<const NodeEdge> from) {
  AG_TRY(Use());
  std::vector<cudaGraphNode_t> nodes;
  for (const NodeEdge& edge : from) nodes.push_back(RawOf(edge.from));
  return FromCuda(cudaStreamBeginCaptureToGraph(RawOf(stream), RawOf(graph), nodes.data(), nullptr,
                                                nodes.size(), cudaStreamCaptureModeThreadLocal),
                  "begin a capture");
}

StatusOr<std::vector<NodeRef>> CudaDriver::EndCapture(StreamRef stream) {
  cudaStreamCaptureStatus state = cudaStreamCaptureStatusNone;
  const cudaGraphNode_t* ends = nullptr;
  const cudaGraphEdgeData* edges = nullptr;
  size_t count = 0;
  const Status read = FromCuda(
      cudaStreamGetCaptureInfo(RawOf(stream), &state, nullptr, nullptr, &ends, &edges, &count),
      "read what was captured");
  std::vector<NodeRef> refs;
  if (read.ok() && state == cudaStreamCaptureStatusActive) {
    for (size_t i = 0; i < count; ++i) refs.push_back(Wrap<NodeRef>(ends[i]));
  }
  cudaGraph_t graph = nullptr;
  AG_TRY(FromCuda(cudaStreamEndCapture(RawOf(stream), &graph), "end a capture"));
  AG_TRY(read);
  return refs;
}

StatusOr<std::vector<NodeRef>> CudaDriver::Nodes(GraphRef graph) {
  size_t count = 0;
  AG_TRY(FromCuda(cudaGraphGetNodes(RawOf(graph), nullptr, &count), "count the nodes"));
  std::vector<cudaGraphNode_t> nodes(count);
  AG_TRY(FromCuda(cudaGraphGetNodes(RawOf(graph), nodes.data(), &count), "list the nodes"));
  std::vector<NodeRef> refs;
  for (const cudaGraphNode_t node : nodes) refs.push_back(Wrap<NodeRef>(node));
  return refs;
}

StatusOr<NodeInfo> CudaDriver::Inspect(NodeRef node) {
  NodeInfo info{.node = node};
  cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
  AG_TRY(FromCuda(cudaGraphNodeGetType(RawOf(node), &type), "look at a node"));
  info.kind = KindOf(type);
  if (info.kind != NodeKind::kKernel || calls_.kernel_node_params == nullptr) return info;
  CUDA_KERNEL_NODE_PARAMS params{};
  if (calls_.kernel_node_params(RawOf(node), &params) != CUDA_SUCCESS) return info;
  info.grid = {params.gridDimX, params.gridDimY, params.gridDimZ};
  info.block = {params.blockDimX, params.blockDimY, params.blockDimZ};
  info.shared_bytes = params.sharedMemBytes;
  const char* name = nullptr;
  if (params.func != nullptr && calls_.function_name != nullptr) {
    if (calls_.function_name(&name, params.func) != CUDA_SUCCESS) name = nullptr;
  } else if (params.kern != nullptr && calls_.kernel_name != nullptr) {
    if (calls_.kernel_name(&name, params.kern) != CUDA_SUCCESS) name = nullptr;
  }
  if (name != nullptr) info.function = name;
  return info;
}

}  // namespace

StatusOr<std::unique_ptr<Driver>> OpenCudaDriver(int ordinal) {
  auto driver = std::make_unique<CudaDriver>();
  AG_TRY(driver->Open(ordinal), "cuda:{}", ordinal);
  return driver;
}

}  // namespace ag::cuda
