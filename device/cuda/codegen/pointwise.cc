#include "device/cuda/codegen/pointwise.h"

#include <algorithm>

#include "graph/tensor.h"

namespace ag::cuda {
namespace {

// Returns the shape of operand `index` for broadcasting.
Shape OperandShape(const Graph& graph, const Node& node, size_t index) {
  const Shape& shape = graph.type(node.inputs[index]).shape;
  if (node.op != OpKind::kBatchNorm || index == 0) return shape;
  Shape lifted(node.outputs[0].shape.size() - 1, 1);
  lifted[0] = shape[0];
  return lifted;
}

}  // namespace

std::optional<std::string> ScalarOf(const Graph& graph, Edge edge) {
  const Node& node = graph.node(edge.node);
  const TensorType& type = graph.type(edge);
  if (node.op != OpKind::kConstant || type.NumElements() != 1) return {};
  const std::string& bytes = node.constant->inline_bytes;
  if (static_cast<int64_t>(bytes.size()) != type.Bytes()) return {};
  const Tensor scalar = Tensor::FromBytes(type, bytes);
  if (type.dtype == DType::kInt64) return IntegerLiteral(scalar.As<int64_t>()[0]);
  return Literal(scalar.At(0), type.dtype);  // A double holds every other type's values.
}

StatusOr<Pointwise> Pointwise::Statements(const GroupContext& context, size_t first, size_t end) {
  Pointwise made;
  if (first > 0) {
    const Edge link{context.group.nodes[first - 1], 0};
    made.is_given_ = true;
    made.given_ = context.graph.type(link).dtype;
    const bool wraps = IsInteger(made.given_);  // It may be a sum of 64 bits.
    made.values_.emplace_back(link, wraps ? Wrapped(made.given_, "v") : "v");
  }
  for (size_t i = first; i < end; ++i) {
    AG_TRY(made.AddNode(context, i), "{}", Info(context.node(i).op).name);
  }
  return made;
}

StatusOr<Pointwise> Pointwise::Between(const GroupContext& context, size_t first, size_t end) {
  AG_LET(Pointwise made, Statements(context, first, end));
  made.results_.push_back(made.values_.back().second);
  return made;
}

StatusOr<Pointwise> Pointwise::Make(const GroupContext& context, size_t first) {
  AG_LET(Pointwise made, Statements(context, first, context.group.nodes.size()));
  for (const Port& port : context.group.outputs) {
    const auto value = std::ranges::find(made.values_, port.edge, [](auto& v) { return v.first; });
    if (value == made.values_.end()) {
      return Err(StatusCode::kUnimplemented, "{}: an output that is computed before the end",
                 Info(context.graph.node(port.edge.node).op).name);
    }
    made.results_.push_back(value->second);
  }
  return made;
}

Status Pointwise::AddNode(const GroupContext& context, size_t i) {
  const Node& node = context.node(i);
  if (!Has(node.op, kElementwise) && node.op != OpKind::kBatchNorm) {
    return Err(StatusCode::kUnimplemented, "is not element-wise");
  }
  AG_TRY(StoredType(node.outputs[0].dtype));
  std::vector<std::string> operands;
  for (size_t k = 0; k < node.inputs.size(); ++k) {
    AG_LET(operands.emplace_back(), Value(context, node, k));
  }
  AG_LET(std::string value, PointwiseExpression(context.graph, node, operands));
  const std::string name = fmt::format("v{}", i);
  statements_.push_back({std::string(ComputedType(node.outputs[0].dtype)), name, std::move(value)});
  values_.emplace_back(Edge{context.group.nodes[i], 0}, name);
  return OkStatus();
}

StatusOr<std::string> Pointwise::Value(const GroupContext& context, const Node& node,
                                       size_t index) {
  const Edge edge = node.inputs[index];
  const auto known = std::ranges::find(values_, edge, [](auto& v) { return v.first; });
  const bool is_vector = index > 0 && node.op == OpKind::kBatchNorm;
  if (known != values_.end() && !is_vector) return known->second;
  const DType dtype = context.graph.type(edge).dtype;
  AG_TRY(StoredType(dtype));
  if (const auto scalar = ScalarOf(context.graph, edge); scalar && context.InputOf(edge) < 0) {
    return *scalar;
  }
  const Shape shape = OperandShape(context.graph, node, index);
  const auto same = std::ranges::find_if(
      operands_, [&](const Operand& o) { return o.edge == edge && o.shape == shape; });
  const size_t at = same - operands_.begin();
  if (same == operands_.end()) operands_.push_back({edge, shape});
  return fmt::format("ag_get(x{})", at);
}

Text Pointwise::Define(const std::string& name, std::span<const TensorArgument> arguments,
                       std::span<const TensorArgument> results) const {
  std::vector<std::string> parameters;
  if (is_given_) parameters.push_back(fmt::format("{} v", ComputedType(given_)));
  for (size_t i = 0; i < arguments.size(); ++i) {
    parameters.push_back(fmt::format("{} x{}", arguments[i].type(), i));
  }
  for (size_t i = 0; i < results.size(); ++i) {
    parameters.push_back(fmt::format("{}& y{}", results[i].type(), i));
  }
  Text text;
  text.Open("AG_DEVICE void {}({})", name, Join(parameters, ", "));
  for (const Statement& s : statements_) text.Line("const {} {} = {};", s.type, s.name, s.value);
  for (size_t i = 0; i < results.size(); ++i) text.Line("ag_put(y{}, {});", i, results_[i]);
  text.Close();
  return text;
}

}  // namespace ag::cuda
