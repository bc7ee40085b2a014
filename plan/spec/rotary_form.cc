#include "plan/spec/rotary_form.h"

#include <algorithm>

namespace ag {
namespace {

Status RefuseRotary(std::string_view why) {
  return Err(StatusCode::kUnimplemented, "rotary: {}", why);
}

class RotaryReader {
 public:
  RotaryReader(const Graph& graph, std::span<const NodeId> nodes) : graph_(graph), nodes_(nodes) {}

  StatusOr<RotaryForm> Read() {
    const Node& sum = graph_.node(nodes_.back());
    form_.shape = sum.outputs[0].shape;
    const DType dtype = sum.outputs[0].dtype;
    if (sum.op != OpKind::kAdd || form_.shape.empty()) return RefuseRotary("no sum");
    if (!IsFloat(dtype) || dtype == DType::kFloat64) return RefuseRotary(DTypeName(dtype));
    for (size_t i = 0; i < 2; ++i) {
      const std::optional<size_t> joined = JoinedOperand(sum.inputs[i]);
      if (!joined) continue;
      const Node& product = graph_.node(sum.inputs[i].node);
      AG_TRY(ReadParts(product.inputs[*joined]));
      AG_LET(form_.turn, ReadOperand(product.inputs[1 - *joined], form_.shape));
      AG_TRY(ReadBase(sum.inputs[1 - i]));
      return std::move(form_);
    }
    return RefuseRotary("no product of what a concat makes");
  }

 private:
  bool IsInside(NodeId id) const { return std::ranges::binary_search(nodes_, id); }

  // Returns which operand of a product the group joins; nothing: the edge is no such product.
  std::optional<size_t> JoinedOperand(Edge edge) const {
    const Node& node = graph_.node(edge.node);
    if (!IsInside(edge.node) || node.op != OpKind::kMul) return std::nullopt;
    for (size_t i = 0; i < 2; ++i) {
      const NodeId id = node.inputs[i].node;
      if (IsInside(id) && graph_.node(id).op == OpKind::kConcat) return i;
    }
    return std::nullopt;
  }

  Status ReadParts(Edge joined) {
    const Node& concat = graph_.node(joined.node);
    const auto rank = std::ssize(form_.shape);
    if (concat.outputs[0].shape != form_.shape || concat.Int("axis") != rank - 1) {
      return RefuseRotary("not joined along the last axis of the result");
    }
    for (const Edge edge : concat.inputs) {
      RotaryPart part;
      AG_LET(part.operand, ReadOperand(edge, graph_.type(edge).shape, &part.is_negative));
      form_.parts.push_back(std::move(part));
    }
    return OkStatus();
  }

  Status ReadBase(Edge edge) {
    const Node& node = graph_.node(edge.node);
    if (IsInside(edge.node) && node.op == OpKind::kMul) {
      AG_LET(form_.factor, ReadOperand(node.inputs[1], form_.shape));
      edge = node.inputs[0];
    }
    AG_LET(form_.base, ReadOperand(edge, form_.shape));
    return OkStatus();
  }

  // Follows the movements of the group in front of an operand, and its signs where they count.
  StatusOr<StridedOperand> ReadOperand(Edge edge, const Shape& wanted,
                                       bool* is_negative = nullptr) {
    std::vector<Edge> path;
    for (; IsInside(edge.node); edge = graph_.node(edge.node).inputs[0]) {
      if (is_negative != nullptr && graph_.node(edge.node).op == OpKind::kNeg) {
        *is_negative = !*is_negative;
      } else {
        path.push_back(edge);
      }
    }
    std::optional<StridedView> view = ViewBehind(graph_, edge, path, wanted);
    const auto is_single = [](const StridedAxis& axis) { return StrideOf(axis).has_value(); };
    if (!view || !std::ranges::all_of(view->axes, is_single)) return RefuseRotary("not by strides");
    const StridedAxis& last = view->axes.back();
    if (!last.empty() && *StrideOf(last) != 1) return RefuseRotary("rows with gaps");
    return StridedOperand{edge, *std::move(view)};
  }

  const Graph& graph_;
  const std::span<const NodeId> nodes_;
  RotaryForm form_;
};

}  // namespace

StatusOr<RotaryForm> ReadRotary(const Graph& graph, std::span<const NodeId> nodes) {
  return RotaryReader(graph, nodes).Read();
}

}  // namespace ag
