// The work of a problem: operations and bytes.
#include <algorithm>

#include "graph/resize.h"
#include "plan/fusion/group_problem.h"

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

}  // namespace

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

namespace {

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

}  // namespace ag
