#include "graph/evaluate.h"

#include "graph/evaluate_as.h"

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
         EvaluateEdgesAs<double>(graph, edges, arrays, constant,
                                 {.threads = options.threads, .on_node = options.on_node}));
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
    if (type.Bytes() == 0) return Tensor::Zeros(type);
    return weights.Get(node.constant->digest, type);
  }
  AG_LET(std::vector<Tensor> tensors, EvaluateEdges(graph, {&edge, 1}, {}, weights));
  return tensors[0];
}

}  // namespace ag
