#include "graph/reference/evaluate_as.h"

#include <algorithm>

#include "base/random.h"
#include "graph/reference/reference.h"
#include "graph/reference/walk.h"

namespace ag {
namespace {

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
  using Value = Array<T>;
  internal::NodeValues<Value> of;
  of.constant = constant;
  of.result = [&](const Node& node,
                  const internal::Operands<Value>& operands) -> StatusOr<Arrays<T>> {
    if (Has(node.op, kBarrier)) {
      return Err(StatusCode::kUnimplemented, "opaque nodes have no exact values");
    }
    return KernelOf<T>(node.op)({.node = node,
                                 .types = operands.types,
                                 .inputs = operands.values,
                                 .threads = options.threads});
  };
  of.check = [&](Edge e, const Value& value) -> Status {
    if (std::ranges::none_of(value.values, Scalar<T>::Poisoned)) return OkStatus();
    return Err(StatusCode::kFailedPrecondition,
               "node {}, {}: exact arithmetic overflowed or divided by zero", e.node,
               Info(graph.node(e.node).op).text_name);
  };
  of.on_node = options.on_node;
  return internal::GraphWalk<Value>(graph, inputs, std::move(of)).Run(edges);
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
