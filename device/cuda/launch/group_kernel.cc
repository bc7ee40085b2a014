#include "device/cuda/launch/group_kernel.h"

#include "graph/evaluate.h"

namespace ag::cuda {

StatusOr<Tensor> Constants::Get(Edge edge) {
  if (const auto found = known_.find(edge); found != known_.end()) return found->second;
  if (!graph_.is_constant(edge.node)) {
    return Err(StatusCode::kInvalidArgument, "operand {}:{} is neither a port nor constant",
               edge.node, edge.output);
  }
  AG_LET(Tensor value, Materialize(graph_, edge, weights_));
  if (graph_.node(edge.node).op != OpKind::kConstant) known_[edge] = value;
  return value;
}

StatusOr<const std::byte*> WeightMemory::Put(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::string name = Sha256(text).Hex();
  if (const auto found = known_.find(name); found != known_.end()) return found->second.get();
  AG_LET(std::byte* memory, driver_.Allocate(bytes.size()));
  OwnedMemory owned(driver_, memory);
  AG_TRY(driver_.Upload(memory, bytes, stream_));
  held_bytes_ += bytes.size();
  known_[name] = std::move(owned);
  return memory;
}

}  // namespace ag::cuda
