#include "device/cuda/launch/buffers.h"

#include <algorithm>

#include "device/cuda/launch/host_form.h"

namespace ag::cuda {

StatusOr<OwnedMemory> Buffers::Allocate(int64_t bytes) {
  bytes = std::max<int64_t>(bytes, 1);  // Every tensor has an address.
  AG_LET(std::byte* const memory, driver_->Allocate(bytes));
  OwnedMemory owned(*driver_, memory);
  AG_TRY(driver_->Fill(memory, 0, bytes, stream_));
  return owned;
}

// A graph input or output itself may have a layout; a place inside one is part of a plain tensor
// (plan/plan.h).
Buffers::Key Buffers::KeyOf(const Place& place) const {
  const bool is_input = place.kind == Place::Kind::kInput;
  const Edge own =
      is_input ? Edge{graph_->inputs()[place.index], 0} : graph_->outputs()[place.index].edge;
  const Layout layout = place.port.layout;
  const bool is_own = place.port.edge == own && place.offset_bytes == 0 &&
                      !HasSameBytes(graph_->type(own), layout, Layout::kPlain);
  return {place.kind, place.index, is_own ? layout : Layout::kPlain};
}

const TensorType& Buffers::TypeOf(const Place& place) const {
  if (place.kind == Place::Kind::kInput) return graph_->type({graph_->inputs()[place.index], 0});
  return graph_->type(graph_->outputs()[place.index].edge);
}

StatusOr<Buffers> Buffers::Make(Driver& driver, StreamRef stream, const Graph& graph,
                                const Plan& plan, Precision precision) {
  Buffers buffers(driver, stream, graph, precision);
  AG_LET(buffers.arena_, buffers.Allocate(plan.arena_bytes));
  for (const Place& place : plan.places) {
    if (place.kind == Place::Kind::kArena) continue;
    Buffer& buffer = buffers.buffers_[buffers.KeyOf(place)];
    if (buffer.memory.get() != nullptr) continue;
    buffer.type = buffers.TypeOf(place);
    const DType stored = StoredDType(buffer.type.dtype, precision);
    buffer.bytes = LayoutBytes({stored, buffer.type.shape}, std::get<Layout>(buffers.KeyOf(place)));
    AG_LET(buffer.memory, buffers.Allocate(buffer.bytes));
  }
  return buffers;
}

std::byte* Buffers::AddressOf(const Place& place) const {
  if (place.kind == Place::Kind::kArena) return Arena(place.offset_bytes);
  return buffers_.at(KeyOf(place)).memory.get() + place.offset_bytes;
}

Status Buffers::Upload(std::span<const Tensor> inputs) {
  for (const auto& [key, buffer] : buffers_) {
    const auto& [kind, index, layout] = key;
    if (kind != Place::Kind::kInput) continue;
    std::vector<std::byte> own;
    std::span<const std::byte> bytes = std::as_bytes(std::span(inputs[index].bytes()));
    if (!HasHostForm(buffer.type, layout, precision_)) {
      own = ToDeviceForm(inputs[index], layout, precision_);
      bytes = own;
    }
    if (!bytes.empty()) AG_TRY(driver_->Upload(buffer.memory.get(), bytes, stream_));
  }
  return OkStatus();
}

Status Buffers::Download(std::span<Tensor> outputs) {
  for (const auto& [key, buffer] : buffers_) {
    const auto& [kind, index, layout] = key;
    if (kind != Place::Kind::kOutput || buffer.bytes == 0) continue;
    if (HasHostForm(buffer.type, layout, precision_)) {
      const std::span<std::byte> bytes = outputs[index].Mutable<std::byte>();
      AG_TRY(driver_->Download(bytes, buffer.memory.get(), stream_));
      continue;
    }
    std::vector<std::byte> own(buffer.bytes);
    AG_TRY(driver_->Download(own, buffer.memory.get(), stream_));
    AG_TRY(driver_->Synchronize(stream_));
    FromDeviceForm(own, layout, precision_, &outputs[index]);
  }
  return driver_->Synchronize(stream_);
}

}  // namespace ag::cuda
