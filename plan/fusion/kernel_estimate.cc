#include "plan/fusion/kernel_estimate.h"

#include <algorithm>

#include "plan/fusion/contraction_blocks.h"

namespace ag {
namespace {

bool AllAre(const Ints& values, int64_t wanted) {
  return std::ranges::all_of(values, [wanted](int64_t value) { return value == wanted; });
}

// Returns the outputs of a side of a form's tile; 0: it is none of Winograd's.
int64_t TileOf(KernelForm form) {
  return form == KernelForm::kWinograd2 ? 2 : form == KernelForm::kWinograd4 ? 4 : 0;
}

bool TakesWinograd(const Graph& graph, const Node& conv) {
  const Shape& w = graph.type(conv.inputs[1]).shape;
  return w.size() == 4 && w[2] == 3 && w[3] == 3 && conv.Int("group") == 1 &&
         AllAre(conv.IntList("strides"), 1) && AllAre(conv.IntList("dilations"), 1) &&
         w[0] >= kWinogradChannelsMin && w[1] >= kWinogradChannelsMin;
}

bool IsPointwise(const Graph& graph, const Node& conv) {
  const Shape& w = graph.type(conv.inputs[1]).shape;
  return w.size() == 4 && w[2] == 1 && w[3] == 1 && conv.Int("group") == 1 &&
         AllAre(conv.IntList("pads"), 0);
}

bool Takes(const KernelFamily& family, const KernelTask& task) {
  if (family.pattern != task.pattern) return false;
  const auto& layouts = family.layouts;
  if (!layouts.empty() && std::ranges::count(layouts, task.layout) == 0) return false;
  if (family.form == KernelForm::kAny) return true;
  const Node* const node = task.contraction;
  if (node == nullptr) return false;
  const Edge right = node->inputs[1];
  const bool is_conv = node->op == OpKind::kConv, is_constant = task.graph.is_constant(right.node);
  switch (family.form) {
    case KernelForm::kAny:
      return true;
    case KernelForm::kFull:
      return is_conv && !IsDepthwise(task.graph, *node);
    case KernelForm::kDepthwise:
      return is_conv && IsDepthwise(task.graph, *node);
    case KernelForm::kPointwise:
      return is_conv && is_constant && IsPointwise(task.graph, *node);
    case KernelForm::kWinograd2:
    case KernelForm::kWinograd4:
      return is_conv && is_constant && TakesWinograd(task.graph, *node);
    case KernelForm::kProduct:
      return !is_conv && is_constant && task.graph.type(right).shape.size() == 2;
  }
  return false;
}

constexpr double kTaps = 9;
// Returns the values of a transformed tile or filter.
double Points(int64_t tile) { return static_cast<double>((tile + 2) * (tile + 2)); }

// Returns the work with the convolution by tiles of tile x tile outputs. A transformed value is
// written and read in a near cache, which counts as one pass.
Work WinogradWork(const KernelTask& task, int64_t tile) {
  const Node& conv = *task.contraction;
  const Shape &w = task.graph.type(conv.inputs[1]).shape, &y = conv.outputs[0].shape;
  const int64_t tiles = y[0] * ((y[2] + tile - 1) / tile) * ((y[3] + tile - 1) / tile);
  const double points = Points(tile);
  const auto filters = static_cast<double>(w[0] * w[1]);
  Work work = task.work;
  work.flops += 2 * points * static_cast<double>(tiles) * filters - FlopsOf(task.graph, conv);
  work.bytes += (points - kTaps) * filters * sizeof(float) +
                points * static_cast<double>(tiles * (w[0] + w[1])) * sizeof(float);
  return work;
}

}  // namespace

int64_t ConstantBytesOf(const Graph& graph) {
  int64_t bytes = 0;
  for (const Node& node : graph.nodes()) {
    if (node.op == OpKind::kConstant) bytes += node.outputs[0].Bytes();
  }
  return bytes;
}

void SetFarBytes(double constant_bytes, double memory_bytes_per_second, const DeviceSpec& spec,
                 KernelTask* task) {
  const auto far = static_cast<double>(spec.far_weights_bytes);
  if (far == 0 || constant_bytes < far) return;
  task->far_bytes = constant_bytes;
  task->memory_bytes_per_second = memory_bytes_per_second;
}

std::optional<double> EstimateKernelNs(const KernelTask& task, const KernelFamily& family) {
  if (!Takes(family, task)) return std::nullopt;
  const int64_t tile = TileOf(family.form);
  const Work work = tile > 0 ? WinogradWork(task, tile) : task.work;
  const double peak = tile > 0 ? task.fp32_flops_per_second : task.flops_per_second;
  double seconds = work.flops / (family.share * peak);
  double far_bytes = task.far_bytes;
  if (far_bytes > 0) {
    if (tile > 0) far_bytes *= Points(tile) / kTaps;
    seconds += far_bytes / (family.far_share * task.memory_bytes_per_second);
  }
  const double near_bytes = std::max(work.bytes - far_bytes, 0.0);
  return family.fixed_ns +
         1e9 * (seconds + near_bytes / (family.bytes_share * task.bytes_per_second));
}

std::optional<double> LeastKernelNs(const KernelTask& task,
                                    std::span<const KernelFamily> families) {
  std::optional<double> least;
  for (const KernelFamily& family : families) {
    const std::optional<double> ns = EstimateKernelNs(task, family);
    if (ns && (!least || *ns < *least)) least = ns;
  }
  return least;
}

}  // namespace ag
