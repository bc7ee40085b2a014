#include "plan/spec/attention_form.h"

#include <algorithm>

#include "base/text.h"

namespace ag {
namespace {

Status Refuse(std::string_view why) {
  return Err(StatusCode::kUnimplemented, "attention: {}", why);
}

bool IsOneConstant(const Graph& graph, Edge edge) {
  return graph.is_constant(edge.node) && graph.type(edge).NumElements() == 1;
}

// Returns the position of the operand that a product or a quotient by a constant scales; -1: none.
int ScaledOperand(const Graph& graph, const Node& node) {
  if (node.op != OpKind::kMul && node.op != OpKind::kDiv) return -1;
  const auto leaves = [&](int scaled) {
    return graph.type(node.inputs[scaled]).shape == node.outputs[0].shape &&
           IsOneConstant(graph, node.inputs[1 - scaled]);
  };
  if (leaves(0)) return 0;
  return node.op == OpKind::kMul && leaves(1) ? 1 : -1;
}

class AttentionReader {
 public:
  AttentionReader(const Graph& graph, std::span<const NodeId> nodes)
      : graph_(graph), nodes_(nodes) {}

  StatusOr<AttentionForm> Read() {
    const NodeId last = ReadTransposesOfResult();
    AG_LET(const NodeId probabilities, ReadProduct(last));
    const Node& softmax = graph_.node(probabilities);
    const auto rank = static_cast<int64_t>(softmax.outputs[0].shape.size());
    if (softmax.op != OpKind::kSoftmax || !IsInside(probabilities) ||
        softmax.Int("axis") != rank - 1) {
      return Refuse("no softmax over the keys");
    }
    Edge scores = softmax.inputs[0];
    while (IsInside(scores.node) && graph_.node(scores.node).op != OpKind::kMatMul) {
      AG_LET(scores, ReadStep(scores.node));
    }
    std::ranges::reverse(form_.steps);
    MoveScale();
    if (!IsInside(scores.node)) return Refuse("no product in front of the softmax");
    AG_TRY(ReadScores(scores.node));
    return std::move(form_);
  }

 private:
  bool IsInside(NodeId id) const { return std::ranges::binary_search(nodes_, id); }
  // Whether the group makes the edge by more than movements.
  bool IsMade(Edge edge) const {
    return IsInside(edge.node) && !Has(graph_.node(edge.node).op, kMovement);
  }

  // Returns the product whose result the group writes. Sets `out`.
  NodeId ReadTransposesOfResult() {
    NodeId id = nodes_.back();
    form_.out = DenseView(graph_.node(id).outputs[0].shape);
    for (; graph_.node(id).op == OpKind::kTranspose; id = graph_.node(id).inputs[0].node) {
      const Ints& perm = graph_.node(id).IntList("perm");
      const std::vector<StridedAxis> after = form_.out.axes;
      for (size_t i = 0; i < perm.size(); ++i) form_.out.axes[perm[i]] = after[i];
    }
    return id;
  }

  // Reads the second product, returns the node of its left operand.
  StatusOr<NodeId> ReadProduct(NodeId id) {
    const Node& node = graph_.node(id);
    const size_t rank = node.outputs[0].shape.size();
    if (!IsInside(id) || node.op != OpKind::kMatMul || rank < 2 ||
        graph_.type(node.inputs[0]).shape.size() != rank) {
      return Refuse("no product behind the softmax");
    }
    if (graph_.type(node.inputs[1]).shape.size() < 2) return Refuse("values of rank 1");
    Shape wanted = node.outputs[0].shape;
    const Shape& left = graph_.type(node.inputs[0]).shape;
    if (!std::equal(left.begin(), left.end() - 2, wanted.begin())) return Refuse("repeated scores");
    form_.queries = wanted[rank - 2];
    form_.width = wanted[rank - 1];
    form_.keys = left[rank - 1];
    if (form_.keys == 0) return Refuse("no keys");
    for (size_t i = 0; i + 2 < rank; ++i) form_.items *= wanted[i];
    wanted[rank - 2] = form_.keys;
    AG_LET(form_.v, ReadOperand(node.inputs[1], wanted));
    return node.inputs[0].node;
  }

  Status ReadScores(NodeId id) {
    const Node& node = graph_.node(id);
    Shape wanted = node.outputs[0].shape;
    const size_t rank = wanted.size();
    if (rank != form_.out.axes.size()) return Refuse("scores of another rank");
    const Shape& q = graph_.type(node.inputs[0]).shape;
    if (q.size() < 2 || graph_.type(node.inputs[1]).shape.size() < 2) {
      return Refuse("operands of rank 1");
    }
    form_.depth = q.back();
    wanted[rank - 1] = form_.depth;
    AG_LET(form_.q, ReadOperand(node.inputs[0], wanted, &form_.factors));
    wanted[rank - 2] = form_.depth;
    wanted[rank - 1] = form_.keys;
    AG_LET(form_.k, ReadOperand(node.inputs[1], wanted, &form_.factors));
    return OkStatus();
  }

  // Reads an operation on the scores, returns the scores before it.
  StatusOr<Edge> ReadStep(NodeId id) {
    using Kind = AttentionStep::Kind;
    const Node& node = graph_.node(id);
    if (node.op == OpKind::kWhere) return ReadReplacement(node);
    static constexpr std::pair<OpKind, Kind> kKinds[] = {{OpKind::kAdd, Kind::kAdd},
                                                         {OpKind::kSub, Kind::kSub},
                                                         {OpKind::kMul, Kind::kMul},
                                                         {OpKind::kDiv, Kind::kDiv}};
    const auto* found = std::ranges::find(kKinds, node.op, &std::pair<OpKind, Kind>::first);
    if (found == std::end(kKinds)) return Refuse(Info(node.op).name);
    const bool is_left = IsMade(node.inputs[0]);
    const bool commutes = node.op == OpKind::kAdd || node.op == OpKind::kMul;
    if (is_left == IsMade(node.inputs[1]) || (!is_left && !commutes)) {
      return Refuse("an operand that the scores divide or are taken from");
    }
    AttentionStep step{found->second};
    AG_LET(step.operand, ReadOperand(node.inputs[is_left ? 1 : 0], node.outputs[0].shape));
    form_.steps.push_back(std::move(step));
    return node.inputs[is_left ? 0 : 1];
  }

  StatusOr<Edge> ReadReplacement(const Node& where) {
    AttentionStep step{AttentionStep::Kind::kReplace};
    step.keeps = IsMade(where.inputs[1]);
    const Edge scores = where.inputs[step.keeps ? 1 : 2];
    step.fill = where.inputs[step.keeps ? 2 : 1];
    if (!IsMade(scores) || !IsOneConstant(graph_, step.fill)) {
      return Refuse("scores replaced by more than one number");
    }
    AG_LET(step.operand, ReadOperand(where.inputs[0], where.outputs[0].shape));
    form_.steps.push_back(std::move(step));
    return scores;
  }

  // The first steps by constants of one element are factors.
  void MoveScale() {
    using Kind = AttentionStep::Kind;
    auto step = form_.steps.begin();
    for (; step != form_.steps.end(); ++step) {
      const bool scales = step->kind == Kind::kMul || step->kind == Kind::kDiv;
      if (!scales || !IsOneConstant(graph_, step->operand.edge)) break;
      form_.factors.push_back({step->operand.edge, step->kind == Kind::kDiv});
    }
    form_.steps.erase(form_.steps.begin(), step);
  }

  // Follows the movements of the group in front of an operand, and its scales where they may be
  // factors of the form.
  StatusOr<StridedOperand> ReadOperand(Edge edge, const Shape& wanted,
                                       std::vector<AttentionFactor>* factors = nullptr) {
    std::vector<Edge> path;
    while (IsInside(edge.node)) {
      const Node& node = graph_.node(edge.node);
      const int scaled = factors == nullptr ? -1 : ScaledOperand(graph_, node);
      if (scaled >= 0) {
        factors->push_back({node.inputs[1 - scaled], node.op == OpKind::kDiv});
      } else if (Has(node.op, kMovement)) {
        path.push_back(edge);
      } else {
        return Refuse("made inside the group");
      }
      edge = node.inputs[std::max(scaled, 0)];
    }
    std::optional<StridedView> view = ViewBehind(graph_, edge, path, wanted);
    const size_t rank = wanted.size();
    if (!view || !StrideOf(view->axes[rank - 2]) || !StrideOf(view->axes[rank - 1])) {
      return Refuse("not by strides");
    }
    return StridedOperand{edge, *std::move(view)};
  }

  const Graph& graph_;
  const std::span<const NodeId> nodes_;
  AttentionForm form_;
};

}  // namespace

StatusOr<AttentionForm> ReadAttention(const Graph& graph, std::span<const NodeId> nodes) {
  return AttentionReader(graph, nodes).Read();
}

bool MayStandBefore(const Graph& graph, NodeId node) {
  switch (graph.node(node).op) {
    case OpKind::kTranspose:
    case OpKind::kReshape:
    case OpKind::kExpand:
    case OpKind::kSlice:
    case OpKind::kSplit:
    case OpKind::kGather:
    case OpKind::kNeg:
      return true;
    default:
      return ScaledOperand(graph, graph.node(node)) >= 0;
  }
}

}  // namespace ag
