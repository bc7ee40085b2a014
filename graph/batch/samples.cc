#include "graph/batch/samples.h"

#include "graph/batch/axis_parts.h"
#include "graph/types.h"

namespace ag {
namespace {

// Returns "reduce_mean (node 7) -> f32[1,8]".
std::string NameOf(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  return fmt::format("{} (node {}) -> {}", Info(node.op).text_name, id, node.outputs[0].ToString());
}

Status Mixes(const Graph& graph, NodeId id) {
  return Err(StatusCode::kUnimplemented, "{}: mixes the samples of the batch", NameOf(graph, id));
}

// True for a constant that is one row, expanded to the batch.
bool IsExpanded(const Graph& graph, NodeId id, int axis) {
  const Node& node = graph.node(id);
  return node.op == OpKind::kExpand &&
         PartOfOperand(graph, id, axis, 0).kind == AxisPart::Kind::kWhole;
}

StatusOr<int64_t> BatchOf(const Graph& graph) {
  int64_t batch = 0;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const Shape& shape = graph.node(graph.inputs()[i]).outputs[0].shape;
    if (shape.empty()) {
      return Err(StatusCode::kInvalidArgument, "input {}: no axis for the batch",
                 graph.input_name(i));
    }
    if (i > 0 && shape[0] != batch) {
      return Err(StatusCode::kInvalidArgument, "inputs {} and {}: batches of {} and {}",
                 graph.input_name(0), graph.input_name(i), batch, shape[0]);
    }
    batch = shape[0];
  }
  return batch;
}

// Returns the axis of the samples in the node's results.
StatusOr<int> AxisOf(const Graph& graph, NodeId id, const Samples& samples) {
  const Node& node = graph.node(id);
  if (node.op == OpKind::kOpaque) return Mixes(graph, id);
  int axis = -1;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const int of_operand = samples.axis_of[node.inputs[i].node];
    if (of_operand < 0) continue;
    const std::optional<int> found = ResultAxisOf(graph, id, i, of_operand);
    if (!found || (axis >= 0 && *found != axis)) return Mixes(graph, id);
    axis = *found;
  }
  for (size_t i = 0; axis >= 0 && i < node.inputs.size(); ++i) {
    const AxisPart part = PartOfOperand(graph, id, axis, i);
    const bool is_constant = graph.is_constant(node.inputs[i].node);
    if (part.kind == AxisPart::Kind::kMixed) return Mixes(graph, id);
    if (part.kind == AxisPart::Kind::kWhole && !is_constant) return Mixes(graph, id);
    if (part.kind == AxisPart::Kind::kCut && is_constant &&
        !IsExpanded(graph, node.inputs[i].node, part.axis)) {
      return Err(StatusCode::kUnimplemented, "{}: its batch is fixed by a constant",
                 NameOf(graph, id));
    }
  }
  for (const TensorType& type : node.outputs) {
    if (axis >= 0 && type.shape[axis] % samples.batch != 0) return Mixes(graph, id);
  }
  return axis;
}

}  // namespace

StatusOr<Samples> FindSamples(const Graph& graph) {
  Samples samples{0, std::vector<int>(graph.size(), -1)};
  AG_LET(samples.batch, BatchOf(graph));
  if (samples.batch < 2) return samples;  // There is nothing to mix.
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (graph.is_constant(id)) continue;
    if (graph.node(id).op == OpKind::kInput) {
      samples.axis_of[id] = 0;
    } else {
      AG_LET(samples.axis_of[id], AxisOf(graph, id, samples));
    }
  }
  return samples;
}

StatusOr<Samples> FindSamples(const Graph& graph, int64_t parts) {
  AG_LET(Samples samples, FindSamples(graph));
  if (parts < 1 || samples.batch % parts != 0) {
    return Err(StatusCode::kInvalidArgument, "batch {}: not a multiple of {}", samples.batch,
               parts);
  }
  return samples;
}

}  // namespace ag
