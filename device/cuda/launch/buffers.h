// The device memory of one plan: the arena with its workspaces, and a buffer for each graph input
// and output in the form that the plan's groups use. One thread at a time.
#pragma once

#include <map>
#include <span>
#include <tuple>

#include "device/cuda/codegen/group_context.h"
#include "device/cuda/launch/driver.h"
#include "graph/tensor.h"

namespace ag::cuda {

class Buffers {
 public:
  // Allocates the memory, all zeros. kResourceExhausted: more than the device has. REQUIRES:
  // `driver` and `stream` outlive the result.
  static StatusOr<Buffers> Make(Driver& driver, StreamRef stream, const Graph& graph,
                                const Plan& plan, Precision precision);

  // Returns the address of a place. REQUIRES: a place of the plan.
  std::byte* AddressOf(const Place& place) const;
  std::byte* Arena(int64_t offset_bytes) const { return arena_.get() + offset_bytes; }

  // Copy between the caller's tensors and the buffers, and convert where the forms differ. Download
  // waits for the stream. REQUIRES: the graph's types, in its order.
  Status Upload(std::span<const Tensor> inputs);
  Status Download(std::span<Tensor> outputs);

 private:
  using Key = std::tuple<Place::Kind, int32_t, Layout>;
  struct Buffer {
    OwnedMemory memory;
    TensorType type;
    int64_t bytes = 0;
  };
  Buffers(Driver& driver, StreamRef stream, const Graph& graph, Precision precision)
      : driver_(&driver), stream_(stream), graph_(&graph), precision_(precision) {}
  StatusOr<OwnedMemory> Allocate(int64_t bytes);
  Key KeyOf(const Place& place) const;
  const TensorType& TypeOf(const Place& place) const;

  Driver* driver_;
  StreamRef stream_;
  const Graph* graph_;
  Precision precision_;
  OwnedMemory arena_;
  std::map<Key, Buffer> buffers_;
};

}  // namespace ag::cuda
