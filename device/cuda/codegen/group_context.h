// What a kernel is made for: a group of a graph, the precision it is computed in, and the chip.
#pragma once

#include <cstdint>

#include "plan/plan.h"

namespace ag::cuda {

// How elements of f32 tensors are kept and multiplied under a policy; other types stay as they are.
// Sums are f32 always.
enum class Precision : uint8_t { kFp32, kTf32, kFp16, kBf16 };
StatusOr<Precision> PrecisionOf(const Policy& policy);  // kInvalidArgument: none of the four.
DType StoredDType(DType dtype, Precision precision);    // As plan/layout.h, by its word.

// The part of a device that decides which kernels there are and how they are cut.
struct Chip {
  int compute_capability = 90;  // 10 * major + minor.
  int sms = 132;
  int64_t shared_bytes_max = 232448;  // Dynamic, of one block that asks for it.
  bool has_early_launch() const { return compute_capability >= 90; }
};

// The group to make a kernel for. Tensors lie as the ports' layouts say, in stored types.
struct GroupContext {
  const Graph& graph;
  const Group& group;
  Precision precision = Precision::kFp32;
  const Chip& chip;

  const Node& node(size_t i) const { return graph.node(group.nodes[i]); }
  int InputOf(Edge edge) const;    // Position among the group's input ports; -1: none.
  bool IsInside(NodeId id) const;  // Is the node one of the group's?
};

}  // namespace ag::cuda
