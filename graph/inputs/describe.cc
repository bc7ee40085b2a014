#include "graph/inputs/describe.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>
#include <set>

#include "graph/graph.h"
#include "graph/onnx/operators/operators.h"
#include "graph/onnx/wire.h"
#include "graph/tensor.h"

namespace ag {
namespace {

constexpr int64_t kLengthOfNothing = 1;  // Where no other input has a sequence.

// A tensor whose elements are `scale` * v + `shift`, where v is an element of the input or, with
// `counts`, a number of its elements that are one.
struct Reached {
  Edge edge;
  double scale = 1, shift = 0;
  bool counts = false;
};

// Returns the only value of a small constant; nothing when there are several.
std::optional<double> ValueOf(const Graph& graph, Edge edge) {
  const Node& node = graph.node(edge.node);
  if (node.op != OpKind::kConstant || node.constant->inline_bytes.empty()) return std::nullopt;
  if (node.outputs[0].dtype == DType::kString) return std::nullopt;
  const Tensor tensor = Tensor::FromBytes(node.outputs[0], node.constant->inline_bytes);
  const std::vector<double> values = tensor.ToDoubles();
  const bool is_one = std::ranges::all_of(values, [&](double v) { return v == values[0]; });
  return is_one ? std::optional(values[0]) : std::nullopt;
}

// Follows one input's values through the graph, as far as they stay what they are but for a factor
// and a summand, and narrows the specification where they choose rows.
class Walk {
 public:
  Walk(const Graph& graph, InputSpec& spec) : graph_(graph), spec_(spec) {}

  void From(Edge input) {
    Visit({input});
    while (!queue_.empty()) {
      const Reached reached = queue_.front();
      queue_.pop_front();
      for (const Use& use : graph_.uses(reached.edge)) Follow(reached, use);
    }
    Conclude();
  }

 private:
  void Visit(const Reached& reached) {
    if (seen_.emplace(reached.edge, reached.counts).second) queue_.push_back(reached);
  }

  void PassOn(Reached reached, NodeId node) {
    for (int32_t i = 0; i < static_cast<int32_t>(graph_.node(node).outputs.size()); ++i) {
      reached.edge = {node, i};
      Visit(reached);
    }
  }

  void Follow(const Reached& reached, const Use& use) {
    const Node& node = graph_.node(use.node);
    switch (node.op) {
      case OpKind::kCast:
      case OpKind::kReshape:
      case OpKind::kTranspose:
      case OpKind::kSlice:
      case OpKind::kSplit:
      case OpKind::kExpand:
      case OpKind::kConcat:
        return PassOn(reached, use.node);
      case OpKind::kAdd:
      case OpKind::kSub:
      case OpKind::kMul:
      case OpKind::kDiv:
        return Compute(reached, use);
      case OpKind::kReduceSum:
        return Count(reached, use.node);
      case OpKind::kGather:
        if (use.index == 0) return PassOn(reached, use.node);
        return Bound(reached,
                     graph_.type(node.inputs[0]).shape[static_cast<size_t>(node.Int("axis"))]);
      case OpKind::kOpaque:
        return FollowKept(reached, use);
      default:
        return;
    }
  }

  void Count(Reached reached, NodeId node) {
    if (reached.counts) return;
    reached.counts = true;
    PassOn(reached, node);
  }

  // A value that is not known may be the mask itself, or what another input adds: it is left out.
  void Compute(Reached reached, const Use& use) {
    const Node& node = graph_.node(use.node);
    const bool is_first = use.index == 0;
    const std::optional<double> other = ValueOf(graph_, node.inputs[is_first ? 1 : 0]);
    if (other) {
      if (node.op == OpKind::kAdd) reached.shift += *other;
      if (node.op == OpKind::kSub) {
        if (!is_first) reached.scale = -reached.scale, reached.shift = -reached.shift;
        reached.shift += is_first ? -*other : *other;
      }
      if (node.op == OpKind::kMul) reached.scale *= *other, reached.shift *= *other;
      if (node.op == OpKind::kDiv) {
        if (!is_first || *other == 0) return;
        reached.scale /= *other, reached.shift /= *other;
      }
    } else if (node.op == OpKind::kDiv || (node.op == OpKind::kSub && !is_first)) {
      return;
    }
    PassOn(reached, use.node);
  }

  void FollowKept(const Reached& reached, const Use& use) {
    const StatusOr<KeptOperator> kept = KeptOperator::Of(graph_.node(use.node));
    if (!kept.ok()) return;
    const std::string& op = kept->node().op_type;
    const auto shape = [&](size_t i) -> const Shape& {
      return graph_.type(graph_.node(use.node).inputs[i]).shape;
    };
    if (op == "CumSum" && use.index == 0) return Count(reached, use.node);
    if (op == "Gather" || op == "GatherElements" || op == "GatherND") {
      if (use.index == 0) return PassOn(reached, use.node);
      if (shape(0).empty()) return;
      return Bound(reached, op == "GatherND" ? *std::ranges::min_element(shape(0))
                                             : SizeAt(kept->node(), shape(0)));
    }
    if (op == "ReverseSequence" && use.index == 1) return Bound(reached, shape(0)[0] + 1);
    if (spec_.role == InputRole::kLengths && (op == "LSTM" || op == "GRU" || op == "RNN")) {
      Bound(reached, shape(0)[0] + 1);
    }
  }

  static int64_t SizeAt(const OnnxNode& node, const Shape& shape) {
    int64_t axis = 0;
    for (const OnnxAttribute& attribute : node.attributes) {
      if (attribute.name == "axis") axis = attribute.i;
    }
    if (axis < 0) axis += static_cast<int64_t>(shape.size());
    const bool is_axis = axis >= 0 && axis < static_cast<int64_t>(shape.size());
    return is_axis ? shape[static_cast<size_t>(axis)] : 0;
  }

  // The values choose among `rows`: 0 <= scale * v + shift <= rows - 1.
  void Bound(const Reached& reached, int64_t rows) {
    if (reached.scale == 0 || rows <= 0) return;
    double low = -reached.shift / reached.scale;
    double high = (static_cast<double>(rows - 1) - reached.shift) / reached.scale;
    if (low > high) std::swap(low, high);
    if (reached.counts) {
      counts_high_ = std::min(counts_high_, std::floor(high));
      return;
    }
    is_bound_ = true;
    low_ = std::max(low_, std::ceil(low));
    high_ = std::min(high_, std::floor(high));
  }

  void Conclude() {
    if (counts_high_ < 1e15) {
      spec_.ones_max = std::max<int64_t>(1, static_cast<int64_t>(counts_high_));
    }
    if (!is_bound_ || !IsInteger(spec_.type.dtype)) return;
    // A negative value that is allowed means something special; 0 is the first row in most models.
    if (low_ < 0 && high_ >= 0) low_ = 0;
    if (low_ > high_ || std::abs(low_) > 1e15 || std::abs(high_) > 1e15) return;
    spec_.low = static_cast<int64_t>(low_);
    spec_.high = static_cast<int64_t>(high_);
    if (spec_.role == InputRole::kIntegers) spec_.role = InputRole::kTokens;
  }

  const Graph& graph_;
  InputSpec& spec_;
  std::deque<Reached> queue_;
  std::set<std::pair<Edge, bool>> seen_;
  bool is_bound_ = false;
  double low_ = -1e18, high_ = 1e18, counts_high_ = 1e18;
};

// The longest sequence that every other input has: the size of axis 1, of a vector that of axis 0.
int64_t SequenceOf(const std::vector<InputSpec>& inputs) {
  int64_t shortest = std::numeric_limits<int64_t>::max();
  for (const InputSpec& input : inputs) {
    if (input.role == InputRole::kLengths || input.type.shape.empty()) continue;
    shortest = std::min(shortest, input.type.shape[input.type.shape.size() > 1 ? 1 : 0]);
  }
  return shortest == std::numeric_limits<int64_t>::max() ? kLengthOfNothing
                                                         : std::max<int64_t>(shortest, 1);
}

}  // namespace

InputSpec DescribeInput(const std::string& name, const TensorType& type) {
  InputSpec spec{.name = name, .type = type, .role = RoleByName(name, type)};
  // A picture or a quantized tensor has all of a byte's values.
  const bool is_bytes = type.dtype == DType::kUInt8 || type.dtype == DType::kInt8;
  if (spec.role == InputRole::kIntegers && is_bytes && type.shape.size() > 1) {
    spec.low = type.dtype == DType::kInt8 ? -128 : 0;
    spec.high = type.dtype == DType::kInt8 ? 127 : 255;
  }
  if (spec.role == InputRole::kPositions || spec.role == InputRole::kLengths) {
    spec.high = std::numeric_limits<int32_t>::max();
  }
  return spec;
}

std::vector<InputSpec> DescribeInputs(const Graph& graph) {
  std::vector<InputSpec> specs;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const Edge input{graph.inputs()[i], 0};
    specs.push_back(DescribeInput(graph.input_name(i), graph.type(input)));
    Walk(graph, specs.back()).From(input);
  }
  const int64_t sequence = SequenceOf(specs);
  for (InputSpec& spec : specs) {
    if (spec.role != InputRole::kLengths) continue;
    spec.low = std::max<int64_t>(spec.low, 1);
    spec.high = std::max(spec.low, std::min(spec.high, sequence));
  }
  return specs;
}

}  // namespace ag
