#include "device/cpu/first_guess.h"

#include <algorithm>
#include <limits>
#include <map>

#include "device/cpu/host.h"
#include "plan/fusion/kernel_estimate.h"

namespace ag::cpu {
namespace {

// Returns the spec of one core. Its text is our own.
const DeviceSpec& OneCore() {
  static const DeviceSpec* const spec = [] {
    StatusOr<DeviceSpec> parsed = ParseDeviceSpec(SpecText(1));
    AG_CHECK(parsed.ok());
    return new DeviceSpec(*std::move(parsed));
  }();
  return *spec;
}

// What the first operator moves and computes; what follows it is the same for all kernels.
KernelTask TaskOf(const GroupContext& context, std::string_view pattern) {
  const DeviceSpec& spec = OneCore();
  const Node& node = context.node(0);
  KernelTask task{pattern, context.graph, &node, context.group.outputs[0].layout};
  task.work.flops = FlopsOf(context.graph, node);
  double constant_bytes = 0;
  for (const Edge input : node.inputs) {
    const auto bytes = static_cast<double>(context.graph.type(input).Bytes());
    task.work.bytes += bytes;
    if (context.graph.is_constant(input.node)) constant_bytes += bytes;
  }
  task.work.bytes += static_cast<double>(node.outputs[0].Bytes());
  task.fp32_flops_per_second = spec.flops_per_second * context.cores;
  const double bf16 = spec.FlopsPerSecond("bf16");
  task.flops_per_second =
      context.stores_bf16 && bf16 > 0 ? bf16 * context.cores : task.fp32_flops_per_second;
  task.bytes_per_second = spec.cache_bytes_per_second;
  SetFarBytes(constant_bytes, spec.bytes_per_second, spec, &task);
  return task;
}

}  // namespace

void SortByEstimate(const GroupContext& context, std::string_view pattern,
                    std::vector<std::string>* names) {
  const KernelTask task = TaskOf(context, pattern);
  std::map<std::string_view, double> ns;
  for (const KernelFamily& family : OneCore().kernels) {
    const std::optional<double> estimate = EstimateKernelNs(task, family);
    if (!estimate) continue;
    const auto [at, is_new] = ns.try_emplace(family.name, *estimate);
    if (!is_new) at->second = std::min(at->second, *estimate);
  }
  std::ranges::stable_sort(*names, {}, [&](const std::string& name) {
    const auto at = ns.find(name);
    return at == ns.end() ? std::numeric_limits<double>::infinity() : at->second;
  });
}

}  // namespace ag::cpu
