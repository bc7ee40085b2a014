#include "graph/reference/evaluate.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "graph/reference/evaluate_as.h"
#include "graph/reference/reference.h"

namespace ag {

namespace {

StatusOr<std::vector<Array<double>>> InputArrays(const Graph& graph,
                                                 const std::vector<Tensor>& inputs) {
  std::vector<Array<double>> arrays;
  if (inputs.empty()) return arrays;  // Fine when nothing depends on one, else found later.
  if (inputs.size() != graph.inputs().size()) {
    return Err(StatusCode::kInvalidArgument, "expected {} inputs, got {}", graph.inputs().size(),
               inputs.size());
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorType& expected = graph.node(graph.inputs()[i]).outputs[0];
    if (inputs[i].type() != expected) {
      return Err(StatusCode::kInvalidArgument, "input '{}': expected {}, got {}",
                 graph.input_name(i), expected.ToString(), inputs[i].type().ToString());
    }
    if (expected.dtype == DType::kString) {
      arrays.emplace_back(expected.shape);  // Only opaque nodes, which do not run, read strings.
    } else {
      arrays.emplace_back(expected.shape, inputs[i].ToDoubles());
    }
  }
  return arrays;
}

StatusOr<Array<double>> ConstantArray(const Node& node, const WeightSource& weights) {
  const TensorType& type = node.outputs[0];
  const std::string& bytes = node.constant->inline_bytes;
  if (!bytes.empty()) return Array<double>(type.shape, Tensor::FromBytes(type, bytes).ToDoubles());
  if (type.NumElements() == 0) return Array<double>(type.shape);
  AG_LET(const Tensor tensor, weights.Get(node.constant->digest, type));
  return Array<double>(type.shape, tensor.ToDoubles());
}

// What one operator reads, in doubles: a stored constant is converted row by row.
struct Operand {
  TensorType type;
  bool advances = false;         // Along the first axis, as the result does.
  std::optional<Tensor> stored;  // Else `values`.
  Array<double> values = Array<double>();

  Array<double> Rows(int64_t begin, int64_t count) const {
    if (!advances) return values;
    Shape shape = type.shape;
    const auto row = static_cast<size_t>(type.NumElements() / shape[0]);
    shape[0] = count;
    const size_t first = static_cast<size_t>(begin) * row, size = static_cast<size_t>(count) * row;
    if (!stored) {
      const auto from = values.values.begin() + static_cast<ptrdiff_t>(first);
      return Array<double>(std::move(shape), {from, from + static_cast<ptrdiff_t>(size)});
    }
    const auto element = static_cast<size_t>(SizeOf(type.dtype));
    const std::string_view bytes = stored->bytes().substr(first * element, size * element);
    return Array<double>(shape, Tensor::View({type.dtype, shape}, bytes, nullptr).ToDoubles());
  }
};

// A block of rows holds about this many elements: its doubles stay in a core's cache. Those of a
// whole weight are fresh pages, which take longer to clear than to fill.
constexpr int64_t kBlockElements = 16 << 10;

StatusOr<Operand> OperandOf(const Graph& graph, Edge edge, const TensorType& result,
                            const WeightSource& weights) {
  Operand operand{.type = graph.type(edge)};
  const Shape& shape = operand.type.shape;
  operand.advances = shape.size() == result.shape.size() && shape[0] == result.shape[0];
  if (operand.advances && graph.node(edge.node).op == OpKind::kConstant) {
    AG_LET(operand.stored, Materialize(graph, edge, weights));
    return operand;
  }
  const ConstantValue<double> constant = [&](NodeId id) {
    return ConstantArray(graph.node(id), weights);
  };
  AG_LET(std::vector<Array<double>> values,
         EvaluateEdgesAs<double>(graph, {&edge, 1}, {}, constant, {.rounds = true}));
  operand.values = std::move(values[0]);
  return operand;
}

// Whether the node's value is large and an element-wise function of stored constants and small
// values, as weights are with a batch norm folded in.
bool GoesByRows(const Graph& graph, const Node& node) {
  const TensorType& result = node.outputs[0];
  if (!Has(node.op, kElementwise) || result.NumElements() <= kBlockElements) return false;
  return std::ranges::all_of(node.inputs, [&](const Edge& e) {
    const TensorType& type = graph.type(e);
    return type.NumElements() <= kBlockElements ||
           (graph.node(e.node).op == OpKind::kConstant && type.shape == result.shape);
  });
}

// The node's value, a block of rows at a time. REQUIRES: GoesByRows.
StatusOr<Tensor> MaterializeByRows(const Graph& graph, const Node& node,
                                   const WeightSource& weights) {
  const TensorType& result = node.outputs[0];
  std::vector<Operand> operands;
  for (const Edge& e : node.inputs) {
    AG_LET(Operand operand, OperandOf(graph, e, result, weights));
    operands.push_back(std::move(operand));
  }
  Tensor tensor = Tensor::Zeros(result);
  const std::span<char> bytes = tensor.Mutable<char>();
  const int64_t rows = result.shape[0], row_bytes = result.Bytes() / rows;
  const int64_t block = std::max<int64_t>(kBlockElements * rows / result.NumElements(), 1);
  Node part = node;
  for (int64_t begin = 0; begin < rows; begin += block) {
    const int64_t count = std::min(block, rows - begin);
    part.outputs[0].shape[0] = count;
    std::vector<Array<double>> values;
    for (const Operand& operand : operands) values.push_back(operand.Rows(begin, count));
    absl::InlinedVector<const Array<double>*, 4> inputs;
    absl::InlinedVector<const TensorType*, 4> types;
    for (size_t i = 0; i < values.size(); ++i) {
      inputs.push_back(&values[i]);
      types.push_back(&operands[i].type);
    }
    AG_LET(const Arrays<double> outputs,
           KernelOf<double>(node.op)({.node = part, .types = types, .inputs = inputs}));
    const Tensor rounded = Tensor::FromDoubles(part.outputs[0], outputs[0].values);
    std::memcpy(bytes.data() + begin * row_bytes, rounded.bytes().data(), rounded.bytes().size());
  }
  return tensor;
}

}  // namespace

StatusOr<std::vector<Tensor>> EvaluateEdges(const Graph& graph, std::span<const Edge> edges,
                                            const std::vector<Tensor>& inputs,
                                            const WeightSource& weights,
                                            const EvaluateOptions& options) {
  for (const Edge& e : edges) {
    if (graph.type(e).dtype != DType::kString) continue;
    return Err(StatusCode::kUnimplemented, "node {}: strings have no reference values", e.node);
  }
  AG_LET(const std::vector<Array<double>> arrays, InputArrays(graph, inputs));
  const ConstantValue<double> constant = [&](NodeId id) {
    return ConstantArray(graph.node(id), weights);
  };
  AG_LET(const std::vector<Array<double>> results,
         EvaluateEdgesAs<double>(
             graph, edges, arrays, constant,
             {.threads = options.threads, .rounds = true, .on_node = options.on_node}));
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < edges.size(); ++i) {
    tensors.push_back(Tensor::FromDoubles(graph.type(edges[i]), results[i].values));
  }
  return tensors;
}

StatusOr<std::vector<Tensor>> Evaluate(const Graph& graph, const std::vector<Tensor>& inputs,
                                       const WeightSource& weights,
                                       const EvaluateOptions& options) {
  std::vector<Edge> edges;
  for (const GraphOutput& output : graph.outputs()) edges.push_back(output.edge);
  return EvaluateEdges(graph, edges, inputs, weights, options);
}

StatusOr<Tensor> Materialize(const Graph& graph, Edge edge, const WeightSource& weights) {
  AG_CHECK(graph.is_constant(edge.node));
  const Node& node = graph.node(edge.node);
  if (node.op == OpKind::kConstant) {  // As it is, also what a double could not hold.
    const TensorType& type = node.outputs[0];
    const std::string& bytes = node.constant->inline_bytes;
    if (!bytes.empty()) return Tensor::FromBytes(type, bytes);
    return ConstantOf(weights, node.constant->digest, type);
  }
  if (GoesByRows(graph, node)) return MaterializeByRows(graph, node, weights);
  AG_LET(std::vector<Tensor> tensors, EvaluateEdges(graph, {&edge, 1}, {}, weights));
  return tensors[0];
}

}  // namespace ag
