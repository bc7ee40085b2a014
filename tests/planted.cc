#include "tests/planted.h"

namespace ag {
namespace {

using Rewire = std::function<StatusOr<Edge>(GraphBuilder&, const Graph&, NodeId)>;
using Fits = std::function<bool(const Graph&, NodeId)>;

// Replaces output 0 of the place-th node that fits by the result of `rewire`.
StatusOr<Graph> RewireAt(const Graph& graph, int place, const Fits& fits, const Rewire& rewire) {
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (graph.is_constant(id) || !fits(graph, id) || place-- > 0) continue;
    GraphBuilder builder(graph);
    AG_LET(const Edge wrong, rewire(builder, graph, id));
    AG_TRY(builder.Replace({id, 0}, wrong));
    return builder.Build();
  }
  return Err(StatusCode::kNotFound, "no such place");
}

bool IsContraction(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (!Has(node.op, kContraction) || !graph.is_constant(node.inputs[1].node)) return false;
  return graph.type(node.inputs[1]).shape.size() == (node.op == OpKind::kConv ? 4u : 2u);
}

// Return the axis of the weights for output channels, and for input channels.
int64_t OutputAxis(const Node& node) { return node.op == OpKind::kConv ? 0 : 1; }
int64_t InputAxis(const Node& node) { return node.op == OpKind::kConv ? 1 : 0; }

// Adds the same node with other operands.
StatusOr<Edge> Again(GraphBuilder& builder, const Node& node, std::vector<Edge> inputs) {
  AG_LET(const NodeId id, builder.Add(node.op, inputs, *node.attributes));
  return Edge{id, 0};
}

StatusOr<Edge> Slice(GraphBuilder& builder, Edge x, int64_t axis, int64_t begin, int64_t end) {
  return builder.Add1(
      OpKind::kSlice, {x},
      {{"axes", Ints{axis}}, {"starts", Ints{begin}}, {"ends", Ints{end}}, {"steps", Ints{1}}});
}

// Rotates the tensor by `by` along the axis: last elements first.
StatusOr<Edge> Rotate(GraphBuilder& builder, Edge x, int64_t axis, int64_t by) {
  const int64_t size = builder.type(x).shape[axis];
  AG_LET(const Edge tail, Slice(builder, x, axis, size - by, size));
  AG_LET(const Edge head, Slice(builder, x, axis, 0, size - by));
  return builder.Add1(OpKind::kConcat, {tail, head}, {{"axis", axis}});
}

StatusOr<Edge> WithWeights(GraphBuilder& builder, const Node& node, Edge weights) {
  std::vector<Edge> inputs(node.inputs.begin(), node.inputs.end());
  inputs[1] = weights;
  return Again(builder, node, std::move(inputs));
}

bool HasChannels(const Graph& graph, NodeId id, bool output) {
  if (!IsContraction(graph, id)) return false;
  const Node& node = graph.node(id);
  return graph.type(node.inputs[1]).shape[output ? OutputAxis(node) : InputAxis(node)] >= 2;
}

StatusOr<Graph> RotateWeights(const Graph& graph, int place, bool output) {
  return RewireAt(
      graph, place, [output](const Graph& g, NodeId id) { return HasChannels(g, id, output); },
      [output](GraphBuilder& b, const Graph&, NodeId id) -> StatusOr<Edge> {
        const Node node = b.node(id);
        AG_LET(const Edge weights,
               Rotate(b, node.inputs[1], output ? OutputAxis(node) : InputAxis(node), 1));
        return WithWeights(b, node, weights);
      });
}

bool IsZeros(const Graph& graph, Edge e) {
  const Node& node = graph.node(e.node);
  return node.op == OpKind::kConstant &&
         node.constant->digest == Tensor::Zeros(node.outputs[0]).Name();
}

// Returns true when more than a movement operator reads the node, ignoring constants added on the
// way. The projections of attention go into its heads like that, and a bias of the keys changes
// nothing, because softmax ignores what is added to all scores of a row.
bool IsRead(const Graph& graph, NodeId id) {
  for (auto uses = graph.uses({id, 0}); !uses.empty(); uses = graph.uses({uses[0].node, 0})) {
    const Node& reader = graph.node(uses[0].node);
    const bool is_bias = reader.op == OpKind::kAdd &&
                         graph.is_constant(reader.inputs[uses[0].index == 0 ? 1 : 0].node);
    if (!is_bias) return !Has(reader.op, kMovement);
  }
  return true;
}

// Drops a bias: a convolution's third operand, or a constant added to a product.
StatusOr<Graph> DropBias(const Graph& graph, int place, MemoryWeights* weights) {
  const auto fits = [](const Graph& g, NodeId id) {
    const Node& node = g.node(id);
    if (node.op == OpKind::kConv) return !IsZeros(g, node.inputs[2]);
    if (node.op == OpKind::kMatMul) return IsContraction(g, id) && IsRead(g, id);
    return node.op == OpKind::kAdd &&
           g.is_constant(node.inputs[0].node) != g.is_constant(node.inputs[1].node) &&
           g.type(node.inputs[0]) != g.type(node.inputs[1]) && IsRead(g, id);
  };
  return RewireAt(
      graph, place, fits, [weights](GraphBuilder& b, const Graph& g, NodeId id) -> StatusOr<Edge> {
        const Node node = b.node(id);
        if (node.op == OpKind::kAdd) return node.inputs[g.is_constant(node.inputs[0].node) ? 1 : 0];
        // A convolution gets zeros; a bare product gets a bias that should not be there: 0.5 at its
        // first channel. At all of them a norm that is behind would take it away.
        const bool conv = node.op == OpKind::kConv;
        const int64_t channels = node.outputs[0].shape.back();
        Tensor tensor =
            Tensor::Zeros(conv ? b.type(node.inputs[2]) : TensorType{DType::kFloat32, {channels}});
        if (!conv) tensor.Put(0, 0.5);
        const Edge bias = b.Constant(tensor.type(), weights->Put(tensor), tensor.bytes());
        if (conv) return Again(b, node, {node.inputs[0], node.inputs[1], bias});
        AG_LET(const Edge again, Again(b, node, {node.inputs[0], node.inputs[1]}));
        return b.Add1(OpKind::kAdd, {again, bias});
      });
}

// Computes two halves of the output channels apart; `shift` moves the second half's begin, `swap`
// joins them in the wrong order.
StatusOr<Graph> WrongHalves(const Graph& graph, int place, int64_t shift, bool swap) {
  const auto fits = [](const Graph& g, NodeId id) {
    const Node& node = g.node(id);
    return HasChannels(g, id, true) && (node.op == OpKind::kMatMul || node.Int("group") == 1);
  };
  return RewireAt(
      graph, place, fits, [=](GraphBuilder& b, const Graph&, NodeId id) -> StatusOr<Edge> {
        const Node node = b.node(id);
        const int64_t axis = OutputAxis(node), size = b.type(node.inputs[1]).shape[axis];
        const int64_t half = size / 2;
        const auto part = [&](int64_t begin, int64_t end) -> StatusOr<Edge> {
          AG_LET(const Edge w, Slice(b, node.inputs[1], axis, begin, end));
          if (node.op == OpKind::kMatMul) return Again(b, node, {node.inputs[0], w});
          AG_LET(const Edge bias, Slice(b, node.inputs[2], 0, begin, end));
          return Again(b, node, {node.inputs[0], w, bias});
        };
        AG_LET(const Edge first, part(0, half));
        AG_LET(const Edge second, part(half - shift, size - shift));
        const int64_t joined =
            node.op == OpKind::kConv ? 1 : static_cast<int64_t>(node.outputs[0].shape.size()) - 1;
        // Unequal halves differ only in their order, which a swap changes as well.
        return swap ? b.Add1(OpKind::kConcat, {second, first}, {{"axis", joined}})
                    : b.Add1(OpKind::kConcat, {first, second}, {{"axis", joined}});
      });
}

bool IsActivation(const Graph& graph, NodeId id) {
  const OpKind op = graph.node(id).op;
  return Has(op, kUnary) && op != OpKind::kCast && IsFloat(graph.node(id).outputs[0].dtype);
}

StatusOr<Graph> DropActivation(const Graph& graph, int place, MemoryWeights*) {
  return RewireAt(graph, place, IsActivation,
                  [](GraphBuilder& b, const Graph&, NodeId id) -> StatusOr<Edge> {
                    return b.node(id).inputs[0];
                  });
}

StatusOr<Graph> OtherActivation(const Graph& graph, int place, MemoryWeights*) {
  return RewireAt(graph, place, IsActivation,
                  [](GraphBuilder& b, const Graph&, NodeId id) -> StatusOr<Edge> {
                    const Node node = b.node(id);
                    const bool tanh = node.op == OpKind::kTanh;
                    return b.Add1(tanh ? OpKind::kSigmoid : OpKind::kTanh, {node.inputs[0]});
                  });
}

// Drops an operand of an element-wise pair, or of a concat (the other is taken twice).
StatusOr<Graph> DropOperand(const Graph& graph, int place, MemoryWeights*) {
  const auto fits = [](const Graph& g, NodeId id) {
    const Node& node = g.node(id);
    if (node.op == OpKind::kConcat) {
      return node.inputs.size() >= 2 && g.type(node.inputs[0]) == g.type(node.inputs[1]);
    }
    return (node.op == OpKind::kAdd || node.op == OpKind::kMul) &&
           !g.is_constant(node.inputs[0].node) && !g.is_constant(node.inputs[1].node) &&
           g.type(node.inputs[0]) == node.outputs[0];
  };
  return RewireAt(graph, place, fits,
                  [](GraphBuilder& b, const Graph&, NodeId id) -> StatusOr<Edge> {
                    const Node node = b.node(id);
                    if (node.op != OpKind::kConcat) return node.inputs[0];
                    std::vector<Edge> inputs(node.inputs.begin(), node.inputs.end());
                    inputs[1] = inputs[0];
                    return Again(b, node, std::move(inputs));
                  });
}

StatusOr<Graph> ScaleWeights(const Graph& graph, int place, MemoryWeights* weights) {
  return RewireAt(graph, place, IsContraction,
                  [weights](GraphBuilder& b, const Graph&, NodeId id) -> StatusOr<Edge> {
                    const Node node = b.node(id);
                    Tensor tensor = Tensor::Zeros({DType::kFloat32, {1}});
                    tensor.Put(0, 2);
                    const Edge factor =
                        b.Constant(tensor.type(), weights->Put(tensor), tensor.bytes());
                    AG_LET(const Edge scaled, b.Add1(OpKind::kMul, {node.inputs[1], factor}));
                    return WithWeights(b, node, scaled);
                  });
}

// Begins a window one too late: moves the pads of a convolution, or the operand of a product.
StatusOr<Graph> ShiftWindow(const Graph& graph, int place, MemoryWeights*) {
  const auto fits = [](const Graph& g, NodeId id) {
    const Node& node = g.node(id);
    if (!IsContraction(g, id)) return false;
    if (node.op == OpKind::kMatMul) return g.type(node.inputs[0]).shape.back() >= 2;
    return node.IntList("pads")[2] >= 1 || node.IntList("pads")[3] >= 1;
  };
  return RewireAt(
      graph, place, fits, [](GraphBuilder& b, const Graph&, NodeId id) -> StatusOr<Edge> {
        const Node node = b.node(id);
        if (node.op == OpKind::kMatMul) {
          const auto axis = static_cast<int64_t>(b.type(node.inputs[0]).shape.size()) - 1;
          AG_LET(const Edge moved, Rotate(b, node.inputs[0], axis, 1));
          return Again(b, node, {moved, node.inputs[1]});
        }
        Ints pads = node.IntList("pads");
        const int axis = pads[2] >= 1 ? 0 : 1;
        pads[axis] += 1;
        pads[axis + 2] -= 1;
        Attributes attributes = *node.attributes;
        attributes.Set("pads", pads);
        AG_LET(const NodeId again, b.Add(OpKind::kConv, node.inputs, attributes));
        return Edge{again, 0};
      });
}

}  // namespace

const std::vector<PlantedBug>& PlantedBugs() {
  static const std::vector<PlantedBug> bugs = {
      {"dropped bias", DropBias},
      {"wrong split point",
       [](const Graph& g, int place, MemoryWeights*) { return WrongHalves(g, place, 1, false); }},
      {"halves joined the wrong way round",
       [](const Graph& g, int place, MemoryWeights*) { return WrongHalves(g, place, 0, true); }},
      {"missing activation", DropActivation},
      {"another activation", OtherActivation},
      {"a neighbour's weight",
       [](const Graph& g, int place, MemoryWeights*) { return RotateWeights(g, place, true); }},
      {"input channels out of step",
       [](const Graph& g, int place, MemoryWeights*) { return RotateWeights(g, place, false); }},
      {"dropped operand", DropOperand},
      {"a scale folded in twice", ScaleWeights},
      {"window shifted by one", ShiftWindow},
  };
  return bugs;
}

int PlacesOf(const PlantedBug& bug, const Graph& graph) {
  MemoryWeights scratch;
  int places = 0;
  while (bug.apply(graph, places, &scratch).status().code() != StatusCode::kNotFound) ++places;
  return places;
}

}  // namespace ag
