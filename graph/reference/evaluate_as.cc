#include "graph/reference/evaluate_as.h"

#include "base/random.h"
#include "graph/onnx/operators/operators.h"
#include "graph/reference/reference.h"

namespace ag {
namespace {

// Runs an opaque node by the kernel of its ONNX operator, which computes on tensors.
template <class T>
StatusOr<Arrays<T>> RunOpaque(const KernelCall<T>& call) {
  if constexpr (!std::is_same_v<T, double>) {
    return Err(StatusCode::kUnimplemented, "opaque nodes have no exact values");
  } else {
    AG_LET(const KeptOperator kept, KeptOperator::Of(call.node));
    std::vector<Tensor> inputs;
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      inputs.push_back(Tensor::FromDoubles(*call.types[i], call.in(i).values));
    }
    AG_LET(const std::vector<Tensor> outputs, kept.Run(inputs, call.threads));
    Arrays<T> arrays;
    for (const Tensor& output : outputs) {
      arrays.emplace_back(output.type().shape, output.ToDoubles());
    }
    return arrays;
  }
}

// Runs the nodes that the wanted edges depend on, in order. Used once.
template <class T>
class Runner {
 public:
  Runner(const Graph& graph, const std::vector<Array<T>>& inputs, const ConstantValue<T>& constant,
         const RunOptions& options)
      : graph_(graph),
        inputs_(inputs),
        constant_(constant),
        options_(options),
        readers_(static_cast<size_t>(graph.size())),
        values_(static_cast<size_t>(graph.size())) {}

  StatusOr<std::vector<Array<T>>> Run(std::span<const Edge> edges) {
    CountReaders(edges);
    AG_TRY(CheckInputs());
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (readers_[id] > 0 && !IsConstant(id)) AG_TRY(Compute(id));
    }
    std::vector<Array<T>> results;
    for (const Edge& e : edges) {
      AG_TRY(Need(e.node));
      Array<T>& value = values_[e.node][static_cast<size_t>(e.output)];
      AG_TRY(CheckPoison(e, value));
      const bool is_last = readers_[e.node] == 1;
      results.push_back(is_last ? std::move(value) : value);
      Release(e.node);
    }
    return results;
  }

 private:
  Status CheckInputs() const {
    bool needed = false;
    for (const NodeId id : graph_.inputs()) needed = needed || readers_[id] > 0;
    if (inputs_.empty() && !needed) return OkStatus();
    if (inputs_.size() != graph_.inputs().size()) {
      return Err(StatusCode::kInvalidArgument, "expected {} inputs, got {}", graph_.inputs().size(),
                 inputs_.size());
    }
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const Shape& expected = graph_.node(graph_.inputs()[i]).outputs[0].shape;
      if (inputs_[i].shape == expected) continue;
      return Err(StatusCode::kInvalidArgument, "input '{}': expected {}, got {}",
                 graph_.input_name(i), ShapeToString(expected), ShapeToString(inputs_[i].shape));
    }
    return OkStatus();
  }

  // Sets readers_[n] to the number of needed operands and wanted edges that read node n. One sweep
  // from the back suffices: operands come before their readers.
  void CountReaders(std::span<const Edge> edges) {
    for (const Edge& e : edges) ++readers_[e.node];
    for (NodeId id = graph_.size() - 1; id >= 0; --id) {
      if (readers_[id] == 0) continue;
      for (const Edge& e : graph_.node(id).inputs) ++readers_[e.node];
    }
  }

  bool IsConstant(NodeId id) const { return graph_.node(id).op == OpKind::kConstant; }

  // Computes a constant for its first reader, so that a model's weights are never in memory all at
  // once.
  Status Need(NodeId id) {
    return IsConstant(id) && values_[id].empty() ? Compute(id) : OkStatus();
  }

  Status Compute(NodeId id) {
    AG_TRY(ComputeNode(id));
    return options_.on_node ? options_.on_node(id) : OkStatus();
  }

  Status ComputeNode(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.op == OpKind::kInput) return ComputeInput(id);
    if (node.op == OpKind::kConstant) {
      AG_LET(Array<T> value, constant_(id));
      values_[id].push_back(std::move(value));
      return OkStatus();
    }
    for (const Edge& e : node.inputs) AG_TRY(Need(e.node));
    absl::InlinedVector<const Array<T>*, 4> inputs;
    absl::InlinedVector<const TensorType*, 4> types;
    for (const Edge& e : node.inputs) {
      inputs.push_back(&values_[e.node][static_cast<size_t>(e.output)]);
      types.push_back(&graph_.type(e));
    }
    const KernelCall<T> call = {
        .node = node, .types = types, .inputs = inputs, .threads = options_.threads};
    AG_LET(values_[id], Has(node.op, kBarrier) ? RunOpaque(call) : KernelOf<T>(node.op)(call));
    if (options_.rounds) RoundResults(node, values_[id]);
    for (const Edge& e : node.inputs) Release(e.node);
    return OkStatus();
  }

  static void RoundResults(const Node& node, Arrays<T>& results) {
    if constexpr (std::is_same_v<T, double>) {
      for (size_t i = 0; i < results.size(); ++i) {
        const DType dtype = node.outputs[i].dtype;
        if (dtype != DType::kString) RoundTo(dtype, results[i].values);
      }
    }
  }

  Status ComputeInput(NodeId id) {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (graph_.inputs()[i] == id) values_[id].push_back(inputs_[i]);
    }
    return OkStatus();
  }

  void Release(NodeId id) {
    if (--readers_[id] == 0) Arrays<T>().swap(values_[id]);
  }

  Status CheckPoison(Edge e, const Array<T>& value) const {
    for (const T& v : value.values) {
      if (!Scalar<T>::Poisoned(v)) continue;
      return Err(StatusCode::kFailedPrecondition,
                 "node {}, {}: exact arithmetic overflowed or divided by zero", e.node,
                 Info(graph_.node(e.node).op).text_name);
    }
    return OkStatus();
  }

  const Graph& graph_;
  const std::vector<Array<T>>& inputs_;
  const ConstantValue<T>& constant_;
  const RunOptions& options_;
  std::vector<int64_t> readers_;
  std::vector<Arrays<T>> values_;
};

template <class T>
T Draw(Random& random);

template <>
double Draw(Random& random) {
  return random.Normal();
}
template <>
Rational Draw(Random& random) {
  const auto num = static_cast<double>(random.Between(-8, 8));
  return Scalar<Rational>::Of(num) /
         Scalar<Rational>::Of(static_cast<double>(random.Between(1, 3)));
}
template <>
Residue Draw(Random& random) {
  return {random.Below(Residue::kP), random.Below(Residue::kQ)};
}

}  // namespace

template <class T>
StatusOr<std::vector<Array<T>>> EvaluateEdgesAs(const Graph& graph, std::span<const Edge> edges,
                                                const std::vector<Array<T>>& inputs,
                                                const ConstantValue<T>& constant,
                                                const RunOptions& options) {
  return Runner<T>(graph, inputs, constant, options).Run(edges);
}

template <class T>
StatusOr<std::vector<Array<T>>> EvaluateAs(const Graph& graph, const std::vector<Array<T>>& inputs,
                                           const ConstantValue<T>& constant,
                                           const RunOptions& options) {
  std::vector<Edge> edges;
  for (const GraphOutput& output : graph.outputs()) edges.push_back(output.edge);
  return EvaluateEdgesAs<T>(graph, edges, inputs, constant, options);
}

template <class T>
Array<T> RandomArray(const TensorType& type, uint64_t seed, int64_t int_below) {
  Random random(seed);
  Array<T> array(type.shape);
  const auto below = static_cast<uint64_t>(type.dtype == DType::kBool ? 2 : int_below);
  for (T& value : array.values) {
    value = IsFloat(type.dtype) ? Draw<T>(random)
                                : Scalar<T>::Of(static_cast<double>(random.Below(below)));
  }
  return array;
}

template <class T>
Array<T> ArrayOf(const Shape& shape, std::span<const double> values) {
  Array<T> array(shape);
  AG_CHECK(values.size() == array.values.size());
  for (size_t i = 0; i < values.size(); ++i) array.values[i] = Scalar<T>::Of(values[i]);
  return array;
}

#define AG_EVALUATE(T)                                                                            \
  template StatusOr<std::vector<Array<T>>> EvaluateEdgesAs<T>(                                    \
      const Graph&, std::span<const Edge>, const std::vector<Array<T>>&, const ConstantValue<T>&, \
      const RunOptions&);                                                                         \
  template StatusOr<std::vector<Array<T>>> EvaluateAs<T>(                                         \
      const Graph&, const std::vector<Array<T>>&, const ConstantValue<T>&, const RunOptions&);    \
  template Array<T> RandomArray<T>(const TensorType&, uint64_t, int64_t);                         \
  template Array<T> ArrayOf<T>(const Shape&, std::span<const double>)

AG_EVALUATE(double);
AG_EVALUATE(Rational);
AG_EVALUATE(Residue);

}  // namespace ag
