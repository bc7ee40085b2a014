// The context of a kernel: a group of a graph, the precision, and the chip. Plain data and pure
// functions.
#pragma once

#include <cstdint>

#include "plan/plan.h"

namespace ag::cuda {

// The stored type and the products of f32 tensors under a policy; other types stay as they are.
// Sums are always f32.
enum class Precision : uint8_t { kFp32, kTf32, kFp16, kBf16 };
StatusOr<Precision> PrecisionOf(const Policy& policy);  // kInvalidArgument: none of the four.
DType StoredDType(DType dtype, Precision precision);    // As plan/spec/layout.h, by its word.

// The properties of a device that decide which kernels exist and how they are cut.
struct Chip {
  int compute_capability = 90;  // 10 * major + minor.
  int sms = 132;
  int64_t shared_bytes_max = 232448;  // Dynamic, for one block that asks for it.
  bool has_early_launch() const { return compute_capability >= 90; }
};

// The group to make a kernel for. Its tensors have the ports' layouts and stored types.
struct GroupContext {
  const Graph& graph;
  const Group& group;
  Precision precision = Precision::kFp32;
  const Chip& chip;

  const Node& node(size_t i) const { return graph.node(group.nodes[i]); }
  int InputOf(Edge edge) const;    // Position among the group's input ports; -1: none.
  bool IsInside(NodeId id) const;  // True when the node is in the group.
};

}  // namespace ag::cuda
