// The time that each kernel family of a spec (plan/spec/kernel_family.h) is expected to take for a
// group: one model for estimates, first guesses and what is worth timing. Pure functions.
#pragma once

#include <optional>
#include <span>

#include "plan/fusion/group_problem.h"
#include "plan/spec/device_spec.h"

namespace ag {

// What the kernels of one group have to do, and with what.
struct KernelTask {
  std::string_view pattern;
  const Graph& graph;
  const Node* contraction = nullptr;  // The first Conv or MatMul of the group; null: none.
  Layout layout = Layout::kPlain;     // Of the result.
  Work work;                          // Of the whole group, each byte moved once.
  double flops_per_second = 0;        // On the group's cores, in its precision.
  double fp32_flops_per_second = 0;   // Likewise, in fp32: Winograd's transforms are in fp32.
  double bytes_per_second = 0;
  double far_bytes = 0;  // Of work.bytes: constants that come from memory.
  double memory_bytes_per_second = 0;
};

// Returns the bytes of the graph's constants.
int64_t ConstantBytesOf(const Graph& graph);

// Sets what comes from memory: all of a group's constants, when they are far_weights_bytes of the
// spec or more.
void SetFarBytes(double constant_bytes, double memory_bytes_per_second, const DeviceSpec& spec,
                 KernelTask* task);

// Returns nanoseconds: fixed_ns, the operations at the family's share of the peak, the bytes at its
// share of the bandwidth, and those from memory at its share of the rate of memory. Winograd's
// families multiply less, read larger weights, and write and read what they transform. Nothing: the
// family does not take the group.
std::optional<double> EstimateKernelNs(const KernelTask& task, const KernelFamily& family);

// Returns the least of EstimateKernelNs; nothing: no family takes the group.
std::optional<double> LeastKernelNs(const KernelTask& task, std::span<const KernelFamily> families);

}  // namespace ag
