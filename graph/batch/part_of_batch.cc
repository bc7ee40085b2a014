#include "graph/batch/part_of_batch.h"

#include <algorithm>

#include "graph/batch/axis_parts.h"
#include "graph/batch/samples.h"
#include "graph/size_attributes.h"

namespace ag {
namespace {

class PartMaker {
 public:
  PartMaker(const Graph& graph, int64_t parts, Samples samples)
      : graph_(graph), parts_(parts), samples_(std::move(samples)) {}

  StatusOr<Graph> Run() {
    FindExpandedConstants();
    for (NodeId id = 0; id < graph_.size(); ++id) AG_TRY(AddNode(id));
    for (const GraphOutput& output : graph_.outputs()) {
      if (samples_.axis_of[output.edge.node] != 0) {
        return Err(StatusCode::kUnimplemented, "output {}: its samples are not its first axis",
                   output.name);
      }
      builder_.Output(edges_[output.edge.node][output.edge.output], output.name);
    }
    std::vector<NodeId> place;
    AG_LET(Graph part, builder_.Build(&place));
    if (part.size() != graph_.size()) return OtherNodes();
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (place[edges_[id][0].node] != id) return OtherNodes();
    }
    return part;
  }

 private:
  static Status OtherNodes() {
    return Err(StatusCode::kUnimplemented, "the part of the batch has other nodes");
  }

  // A constant row that is expanded to the batch is expanded to the part.
  void FindExpandedConstants() {
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (graph_.is_constant(id) || samples_.axis_of[id] < 0) continue;
      const Node& node = graph_.node(id);
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        const NodeId operand = node.inputs[i].node;
        if (graph_.node(operand).op != OpKind::kExpand || !graph_.is_constant(operand)) continue;
        const AxisPart part = PartOfOperand(graph_, id, samples_.axis_of[id], i);
        if (part.kind == AxisPart::Kind::kCut) samples_.axis_of[operand] = part.axis;
      }
    }
  }

  Status AddNode(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.op == OpKind::kInput) {
      TensorType type = node.outputs[0];
      type.shape[0] /= parts_;
      const auto& inputs = graph_.inputs();
      const auto at = static_cast<size_t>(std::ranges::find(inputs, id) - inputs.begin());
      edges_.push_back({builder_.Input(graph_.input_name(at), std::move(type))});
      return OkStatus();
    }
    if (node.op == OpKind::kConstant) {
      edges_.push_back(
          {builder_.Constant(node.outputs[0], node.constant->digest, node.constant->inline_bytes)});
      return OkStatus();
    }
    std::vector<Edge> inputs;
    for (const Edge input : node.inputs) inputs.push_back(edges_[input.node][input.output]);
    const bool is_opaque = node.op == OpKind::kOpaque;  // Of constants alone.
    AG_LET(const NodeId made, is_opaque ? builder_.AddCopy(node, inputs)
                                        : builder_.Add(node.op, inputs, AttributesOf(id)));
    edges_.emplace_back();
    for (int32_t i = 0; i < static_cast<int32_t>(node.outputs.size()); ++i) {
      edges_.back().push_back({made, i});
    }
    return OkStatus();
  }

  // The attributes, with the part's size where one holds that of the samples.
  Attributes AttributesOf(NodeId id) const {
    const Node& node = graph_.node(id);
    Attributes attributes = *node.attributes;
    const int axis = samples_.axis_of[id];
    if (axis < 0) return attributes;
    for (const auto& [name, value] : node.attributes->items()) {
      // Slices, splits and pads have no size along an axis that can be cut.
      const bool whole_shape =
          node.op == OpKind::kReshape || node.op == OpKind::kExpand || node.op == OpKind::kResize;
      if (!whole_shape || !HoldsSizes(node.op, name)) continue;
      Ints sizes = node.IntList(name);
      sizes[axis] /= parts_;
      attributes.Set(name, std::move(sizes));
    }
    return attributes;
  }

  const Graph& graph_;
  const int64_t parts_;
  Samples samples_;
  GraphBuilder builder_;
  std::vector<std::vector<Edge>> edges_;  // By NodeId of graph_.
};

}  // namespace

StatusOr<Graph> PartOfBatch(const Graph& graph, int64_t parts) {
  if (parts == 1) return graph;
  AG_LET(Samples samples, FindSamples(graph, parts));
  return PartMaker(graph, parts, std::move(samples)).Run();
}

}  // namespace ag
