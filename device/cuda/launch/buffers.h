// The device memory of one plan: the arena with its workspaces, and a buffer for each graph input
// and output in the form that the plan's groups want.
#pragma once

#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "device/cuda/codegen/group_context.h"
#include "device/cuda/launch/driver.h"
#include "graph/tensor.h"

namespace ag::cuda {

class Buffers {
 public:
  // Allocates; all memory begins as zeros. kResourceExhausted: more than the device has.
  // `driver` and `stream` outlive it.
  static StatusOr<Buffers> Make(Driver& driver, StreamRef stream, const Graph& graph,
                                const Plan& plan, Precision precision);

  // REQUIRES: a place of the plan.
  std::byte* AddressOf(const Place& place) const;
  std::byte* Arena(int64_t offset_bytes) const { return arena_.get() + offset_bytes; }

  // Copies between the caller's tensors and the buffers, converted where the forms differ.
  // REQUIRES: the graph's types, in its order. Download has waited for the stream when it returns.
  Status Upload(std::span<const Tensor> inputs);
  Status Download(std::span<Tensor> outputs);

  int64_t bytes() const { return bytes_; }

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
  int64_t bytes_ = 0;
};

}  // namespace ag::cuda
