#include "plan/fusion/group_time.h"

#include <algorithm>

#include "graph/resize.h"

namespace ag {
namespace {

// Returns the operations per element of an element-wise result: a transcendental function counts as
// ten multiply-adds of a polynomial.
double ElementwiseFlops(OpKind op) { return Has(op, kTranscendental) ? 20 : 1; }

double Product(const Ints& values) {
  double product = 1;
  for (const int64_t value : values) product *= static_cast<double>(value);
  return product;
}

// Returns the number of operand elements in one result of a resize.
int64_t ResizeTapsOf(const Graph& graph, const Node& node) {
  return ResizeOf(*node.attributes, graph.type(node.inputs[0]).shape).all_taps();
}

double FlopsOf(const Graph& graph, const Node& node) {
  const double out = static_cast<double>(node.outputs[0].NumElements());
  if (node.inputs.empty()) return 0;
  const TensorType& in = graph.type(node.inputs[0]);
  if (node.op == OpKind::kConv) {  // A multiply and an add per weight of an output channel.
    const TensorType& weights = graph.type(node.inputs[1]);
    const double per_output =
        static_cast<double>(weights.NumElements()) / std::max<int64_t>(1, weights.shape[0]);
    return 2 * out * per_output;
  }
  if (node.op == OpKind::kMatMul) return 2 * out * static_cast<double>(in.shape.back());
  if (Has(node.op, kElementwise)) return out * ElementwiseFlops(node.op);
  if (Has(node.op, kPooling)) return out * Product(node.IntList("kernel_shape"));
  if (Has(node.op, kResampling)) return 2 * out * static_cast<double>(ResizeTapsOf(graph, node));
  if (Has(node.op, kReduction)) return static_cast<double>(in.NumElements());
  // Softmax: maximum, exp, sum, divide. Layer norm: mean, variance, scale. Batch norm: scale,
  // shift.
  if (node.op == OpKind::kBatchNorm) return 2 * out;
  if (Has(node.op, kNormalization)) return (node.op == OpKind::kSoftmax ? 25 : 8) * out;
  return 0;
}

// Returns the bytes of an operand that a reader takes: a gather, a slice and a nearest resize read
// only the elements that they return.
double BytesRead(const Node& node, size_t index, double bytes, std::string_view precision) {
  const bool picks =
      node.op == OpKind::kGather || node.op == OpKind::kSlice ||
      (node.op == OpKind::kResize && node.attributes->String("mode") == kResizeModes[0]);
  if (!picks || index != 0) return bytes;
  return std::min<double>(bytes, StoredType(node.outputs[0], precision).Bytes());
}

double BytesOfConstants(const GroupProblem& problem) {
  const Graph& graph = problem.graph;
  double bytes = 0;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (node.op != OpKind::kConstant || graph.uses({id, 0}).empty()) continue;
    const Use use = graph.uses({id, 0})[0];
    const TensorType type = StoredType(node.outputs[0], problem.precision);
    bytes += BytesRead(graph.node(use.node), use.index, type.Bytes(), problem.precision);
  }
  return bytes;
}

double BytesOfInputs(const GroupProblem& problem) {
  const Graph& graph = problem.graph;
  double bytes = 0;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const Edge edge{graph.inputs()[i], 0};
    const TensorType type = StoredType(graph.type(edge), problem.precision);
    const double all = static_cast<double>(LayoutBytes(type, problem.input_layouts[i]));
    const auto uses = graph.uses(edge);
    if (uses.size() != 1) {
      bytes += all;
    } else {
      const Node& reader = graph.node(uses[0].node);
      bytes += BytesRead(reader, uses[0].index, all, problem.precision);
    }
  }
  return bytes;
}

// Returns the convolution that a library runs, or null. Not a depthwise one: its kernels take any
// channels.
const Node* FindConvolution(const Graph& graph) {
  for (const Node& node : graph.nodes()) {
    if (node.op != OpKind::kConv) continue;
    const bool is_depthwise = node.Int("group") > 1 && graph.type(node.inputs[1]).shape[1] == 1;
    return is_depthwise ? nullptr : &node;
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
    copies.bytes += static_cast<double>(2 * (type.Bytes() / pixel * padded));
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

}  // namespace

double FlopsOf(const Graph& graph) {
  double flops = 0;
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (!graph.is_constant(id)) flops += FlopsOf(graph, graph.node(id));
  }
  return flops;
}

Work WorkOf(const GroupProblem& problem) {
  const Graph& graph = problem.graph;
  Work work{.flops = FlopsOf(graph)};
  work.bytes = BytesOfConstants(problem) + BytesOfInputs(problem);
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    const TensorType type = StoredType(graph.type(graph.outputs()[i].edge), problem.precision);
    work.bytes += static_cast<double>(LayoutBytes(type, problem.output_layouts[i]));
  }
  return work;
}

double RooflineNs(const GroupProblem& problem, const DeviceSpec& spec) {
  Work work = WorkOf(problem);
  const PaddedCopies copies = CopiesOf(problem, spec.channel_bytes);
  work.bytes += copies.bytes;
  int64_t outputs = 1;
  for (const GraphOutput& output : problem.graph.outputs()) {
    outputs = std::max(outputs, problem.graph.type(output.edge).NumElements());
  }
  const int given = problem.cores > 0 ? std::min(problem.cores, spec.cores) : spec.cores;
  const double cores = CoresTaken(spec, outputs, given);
  // A quarter of the cores can use the whole memory bandwidth; cache bandwidth is per core.
  const double memory = spec.bytes_per_second * std::min(1.0, 4 * cores / spec.cores);
  const double cache = spec.cache_bytes_per_second * cores / spec.cores;
  // With evicted caches, inputs and constants come at the rate of memory, and written bytes evict
  // as many.
  const bool cached = !problem.cold_cache && work.bytes <= static_cast<double>(spec.cache_bytes);
  const double bandwidth = cached ? std::max(memory, cache) : memory;
  const double own = spec.FlopsPerSecond(problem.precision);
  const double flops_per_second = (own > 0 ? own : spec.flops_per_second) * cores;
  const double seconds = std::max(work.flops / flops_per_second, work.bytes / bandwidth);
  return seconds * 1e9 + (1 + copies.count) * spec.launch_ns;
}

}  // namespace ag
