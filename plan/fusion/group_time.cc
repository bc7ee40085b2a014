#include "plan/fusion/group_time.h"

#include <algorithm>

#include "plan/fusion/contraction_blocks.h"
#include "plan/fusion/kernel_estimate.h"

namespace ag {
namespace {

// Returns the convolution that a library runs, or null. Not a depthwise one: its kernels take any
// channels.
const Node* FindConvolution(const Graph& graph) {
  for (const Node& node : graph.nodes()) {
    if (node.op != OpKind::kConv) continue;
    return IsDepthwise(graph, node) ? nullptr : &node;
  }
  return nullptr;
}

// The bytes that the padded copies of a convolution's tensors move. Each copy is a kernel: it reads
// and writes the tensor, and the padded one is then read.
struct PaddedCopies {
  double bytes = 0;
  int count = 0;
};
PaddedCopies CopiesOf(const GroupProblem& problem, int64_t channel_bytes) {
  PaddedCopies copies;
  const Graph& graph = problem.graph;
  if (channel_bytes == 0 || FindConvolution(graph) == nullptr) return copies;
  const auto add = [&](Edge edge, Layout layout) {
    if (layout != Layout::kChannelsLast) return;
    const TensorType type = StoredType(graph.type(edge), problem.precision);
    const int64_t pixel = type.shape[1] * SizeOf(type.dtype);
    if (pixel % channel_bytes == 0 || pixel == 0) return;
    const int64_t padded = (pixel + channel_bytes - 1) / channel_bytes * channel_bytes;
    const int64_t pixels = type.Bytes() / pixel;
    copies.bytes += static_cast<double>(2 * pixels * padded);
    ++copies.count;
  };
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    add({graph.inputs()[i], 0}, problem.input_layouts[i]);
  }
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    add(graph.outputs()[i].edge, problem.output_layouts[i]);
  }
  return copies;
}

// Returns the bytes per second that `cores` cores get from memory. A quarter of all cores can use
// the whole bandwidth.
double MemoryBandwidthOf(double cores, const DeviceSpec& spec) {
  return spec.bytes_per_second * std::min(1.0, 4 * cores / spec.cores);
}

// Returns the bytes per second that `cores` cores move. Cache bandwidth is per core. With evicted
// caches, inputs and constants come at the rate of memory, and written bytes evict as many.
double BandwidthOf(double cores, const Work& work, const GroupProblem& problem,
                   const DeviceSpec& spec) {
  const double memory = MemoryBandwidthOf(cores, spec);
  const double cache = spec.cache_bytes_per_second * cores / spec.cores;
  const bool cached = !problem.cold_cache && work.bytes <= static_cast<double>(spec.cache_bytes);
  return cached ? std::max(memory, cache) : memory;
}

// Returns the roofline of the work on `cores` cores.
double SecondsOn(double cores, const Work& work, const GroupProblem& problem,
                 const DeviceSpec& spec) {
  const double own = spec.FlopsPerSecond(problem.precision);
  const double flops_per_second = (own > 0 ? own : spec.flops_per_second) * cores;
  return std::max(work.flops / flops_per_second,
                  work.bytes / BandwidthOf(cores, work, problem, spec));
}

// What a contraction's kernel has to do, and the cores that it may have.
struct BlockWork {
  Work work;
  int64_t outputs = 1;
  int cores = 1;
};

// Returns the fastest way to share each sum among blocks. A part of a sum is an f32.
GroupEstimate EstimateBlocks(const ContractionBlocks& kernel, const BlockWork& all,
                             const GroupProblem& problem, const DeviceSpec& spec) {
  GroupEstimate best;
  for (int64_t parts = 1; parts <= kSplitMax; parts *= 2) {
    if (parts > 1 && (spec.split_ns == 0 || kernel.blocks * parts > all.cores)) break;
    const auto cores = static_cast<int>(std::min<int64_t>(kernel.blocks * parts, all.cores));
    const double loads = kernel.load_bytes / (spec.core_bytes_per_second * cores);
    double seconds = std::max(SecondsOn(cores, all.work, problem, spec), loads);
    if (parts > 1) {
      const double bytes = 2.0 * sizeof(float) * static_cast<double>(parts * all.outputs);
      seconds += spec.split_ns / 1e9 + bytes / BandwidthOf(cores, all.work, problem, spec);
    }
    if (parts == 1 || seconds * 1e9 < best.ns) best = {seconds * 1e9, cores};
  }
  return best;
}

// Returns the least time of the spec's kernels for the group; nothing: it lists none for it.
std::optional<double> EstimateByKernels(const GroupProblem& problem, const DeviceSpec& spec,
                                        int cores) {
  const auto& kernels = spec.kernels;
  const auto is_for_it = [&](const KernelFamily& f) { return f.pattern == problem.pattern; };
  if (std::ranges::none_of(kernels, is_for_it)) return std::nullopt;
  KernelTask task{problem.pattern, problem.graph};
  for (const Node& node : problem.graph.nodes()) {
    if (!Has(node.op, kContraction)) continue;
    task.contraction = &node;
    break;
  }
  task.layout = problem.output_layouts[0];
  task.work = WorkOf(problem);
  const double own = spec.FlopsPerSecond(problem.precision);
  task.fp32_flops_per_second = spec.flops_per_second * cores;
  task.flops_per_second = own > 0 ? own * cores : task.fp32_flops_per_second;
  task.bytes_per_second = BandwidthOf(cores, task.work, problem, spec);
  const auto constant_bytes = static_cast<double>(ConstantBytesOf(problem.graph));
  SetFarBytes(constant_bytes, MemoryBandwidthOf(cores, spec), spec, &task);
  return LeastKernelNs(task, kernels);
}

}  // namespace

GroupEstimate EstimateGroup(const GroupProblem& problem, const DeviceSpec& spec) {
  const int given = problem.cores > 0 ? std::min(problem.cores, spec.cores) : spec.cores;
  if (const auto ns = EstimateByKernels(problem, spec, given)) return {.ns = *ns};
  Work work = WorkOf(problem);
  const PaddedCopies copies = CopiesOf(problem, spec.channel_bytes);
  work.bytes += copies.bytes;
  const double fixed_ns = (1 + copies.count) * spec.launch_ns;
  int64_t outputs = 1;
  for (const GraphOutput& output : problem.graph.outputs()) {
    outputs = std::max(outputs, problem.graph.type(output.edge).NumElements());
  }
  const bool asks_shape = spec.contraction_ns > 0 || spec.core_bytes_per_second > 0;
  const std::optional<Contraction> contraction =
      asks_shape ? FindContraction(problem.graph, problem.precision) : std::nullopt;
  if (!contraction || spec.core_bytes_per_second == 0) {
    const int cores = CoresTaken(spec, outputs, given);
    return {.ns = SecondsOn(cores, work, problem, spec) * 1e9 + fixed_ns +
                  (contraction ? spec.contraction_ns : 0)};
  }
  GroupEstimate best =
      EstimateBlocks(BlocksOf(*contraction, spec, given), {work, outputs, given}, problem, spec);
  best.ns += fixed_ns + spec.contraction_ns;
  return best;
}

double RooflineNs(const GroupProblem& problem, const DeviceSpec& spec) {
  return EstimateGroup(problem, spec).ns;
}

}  // namespace ag
