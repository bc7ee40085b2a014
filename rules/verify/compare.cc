#include "rules/verify/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "base/random.h"
#include "graph/reference/evaluate_as.h"
#include "graph/tensor.h"

namespace ag {
namespace {

uint64_t SeedOf(const Digest& digest, uint64_t seed) {
  uint64_t word = 0;
  std::memcpy(&word, digest.bytes.data(), sizeof(word));
  return word ^ seed;
}

bool Positive(const CompareOptions& options) {
  return options.values != Values::kSmall && options.seed % 2 == 0;
}

// The values of inputs and constants, by name and digest. Indices are valid for `before`.
class Source {
 public:
  Source(const Graph& before, const CompareOptions& options) : options_(options) {
    for (const Node& node : before.nodes()) {
      if (node.op != OpKind::kGather) continue;
      const int64_t size = before.type(node.inputs[0]).shape[node.Int("axis")];
      indices_below_ = std::min(indices_below_.value_or(size), std::max<int64_t>(size, 1));
    }
  }

  template <class T>
  Array<T> Of(const TensorType& type, const Digest& name) const {
    const uint64_t seed = SeedOf(name, options_.seed);
    if (!IsFloat(type.dtype)) return Integers<T>(type, seed);
    if (options_.values == Values::kSmall) return Small<T>(type, seed);
    Array<T> array = RandomArray<T>(type, seed);
    if constexpr (std::is_same_v<T, double>) {
      Random random(seed + 1);
      for (double& value : array.values) {
        if (Positive(options_)) value = std::fabs(value) + 0.125;
        if (options_.values == Values::kNonFinite) MakeNonFinite(random, &value);
      }
    }
    return array;
  }

  template <class T>
  Array<T> OfInput(const Graph& graph, size_t i) const {
    return Of<T>(graph.type({graph.inputs()[i], 0}), Sha256(graph.input_name(i)));
  }

  template <class T>
  Array<T> OfConstant(const Node& node) const {
    const TensorType& type = node.outputs[0];
    const std::string& bytes = node.constant->inline_bytes;
    if (bytes.empty()) return Of<T>(type, node.constant->digest);
    const Tensor tensor = Tensor::View(type, bytes, node.facts);
    std::vector<double> values;
    for (int64_t i = 0; i < type.NumElements(); ++i) values.push_back(tensor.At(i));
    return ArrayOf<T>(type.shape, values);
  }

 private:
  static void MakeNonFinite(Random& random, double* value) {
    static constexpr double kValues[] = {INFINITY, -INFINITY, NAN, 0};
    if (random.Below(6) == 0) *value = kValues[random.Below(std::size(kValues))];
  }

  template <class T>
  Array<T> Integers(const TensorType& type, uint64_t seed) const {
    if (indices_below_.has_value()) return RandomArray<T>(type, seed, *indices_below_);
    Array<T> array = RandomArray<T>(type, seed, 7);
    if (type.dtype == DType::kBool) return array;
    for (T& value : array.values) value = value - Scalar<T>::Of(3);
    return array;
  }

  template <class T>
  static Array<T> Small(const TensorType& type, uint64_t seed) {
    Random random(seed);
    Array<T> array(type.shape);
    for (T& value : array.values) {
      value = Scalar<T>::Of(static_cast<double>(random.Between(-3, 3)));
    }
    return array;
  }

  const CompareOptions& options_;
  std::optional<int64_t> indices_below_;  // The smallest axis that a gather indexes.
};

template <class T>
StatusOr<std::vector<Array<T>>> Run(const Graph& graph, const Source& source) {
  std::vector<Array<T>> inputs;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    inputs.push_back(source.OfInput<T>(graph, i));
  }
  return EvaluateAs<T>(graph, inputs, [&](NodeId id) -> StatusOr<Array<T>> {
    return source.OfConstant<T>(graph.node(id));
  });
}

// Whether an input, an output or an inner value of the graph is Inf or NaN.
bool HasNonFinite(const Graph& graph, const Source& source) {
  GraphBuilder builder(graph);
  for (NodeId id = 0; id < graph.size(); ++id) {
    for (size_t o = 0; o < graph.node(id).outputs.size(); ++o) {
      builder.Output({id, static_cast<int32_t>(o)}, fmt::format("{}.{}", id, o));
    }
  }
  const StatusOr<Graph> all = builder.Build();
  if (!all.ok()) return false;
  const auto values = Run<double>(*all, source);
  return values.ok() && std::any_of(values->begin(), values->end(), [](const auto& array) {
           return std::any_of(array.values.begin(), array.values.end(),
                              [](double value) { return !std::isfinite(value); });
         });
}

// The exact meaning of an operator: in both arithmetics, only where numbers are ordered, or in
// neither.
enum class Meaning { kArithmetic, kOrdered, kNone };

Meaning MeaningOf(OpKind op) {
  if (Has(op, kArithmetic) || Has(op, kMovement) || Has(op, kLeaf)) return Meaning::kArithmetic;
  return Has(op, kOrdered) ? Meaning::kOrdered : Meaning::kNone;
}

// Returns the strongest need of an operator of either graph.
Meaning MeaningOf(const Graph& before, const Graph& after) {
  Meaning most = Meaning::kArithmetic;
  for (const Graph* graph : {&before, &after}) {
    for (const Node& node : graph->nodes()) most = std::max(most, MeaningOf(node.op));
  }
  return most;
}

enum class Verdict { kEqual, kDifferent, kUnknown };

template <class T>
Verdict CompareExactly(const Graph& before, const Graph& after, const Source& source) {
  const auto a = Run<T>(before, source);
  const auto b = Run<T>(after, source);
  if (!a.ok() || !b.ok()) return Verdict::kUnknown;
  for (size_t i = 0; i < a->size(); ++i) {
    if ((*a)[i].shape != (*b)[i].shape) return Verdict::kDifferent;
    for (size_t j = 0; j < (*a)[i].values.size(); ++j) {
      if (!((*a)[i].values[j] == (*b)[i].values[j])) return Verdict::kDifferent;
    }
  }
  return Verdict::kEqual;
}

double ErrorOf(double a, double b, double scale) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) == std::isnan(b) ? 0 : INFINITY;
  if (a == b) return 0;
  return std::isinf(a) || std::isinf(b) ? INFINITY : std::fabs(a - b) / scale;
}

double LargestOf(const Array<double>& array, double least) {
  for (const double value : array.values) {
    if (std::isfinite(value)) least = std::max(least, std::fabs(value));
  }
  return least;
}

// Sets float_error and, when it is not zero, the difference.
bool CompareFloats(const Graph& before, const Graph& after, const Source& source,
                   bool relative_to_inputs, Comparison* out) {
  const auto a = Run<double>(before, source);
  const auto b = Run<double>(after, source);
  // It reads beyond the end of a tensor.
  if (a.ok() && b.status().code() == StatusCode::kOutOfRange) {
    out->float_error = INFINITY;
    out->difference = fmt::format("the target cannot be computed: {}\n", Message(b.status()));
    return true;
  }
  if (!a.ok() || !b.ok()) return false;
  double least = 1e-30;
  for (size_t i = 0; relative_to_inputs && i < before.inputs().size(); ++i) {
    least = LargestOf(source.OfInput<double>(before, i), least);
  }
  for (size_t i = 0; i < a->size(); ++i) {
    const double scale = LargestOf((*a)[i], least);
    for (size_t j = 0; j < (*a)[i].values.size(); ++j) {
      const double error = ErrorOf((*a)[i].values[j], (*b)[i].values[j], scale);
      if (error <= out->float_error) continue;
      out->float_error = error;
      out->difference =
          fmt::format("output {} element {}: {} before, {} after\n", before.outputs()[i].name, j,
                      (*a)[i].values[j], (*b)[i].values[j]);
    }
  }
  return true;
}

std::string ValuesOf(const Graph& graph, const Source& source) {
  std::string text;
  const auto add = [&](const std::string& name, const Array<double>& array) {
    if (array.values.size() > 24) return;
    text += fmt::format("{} = {{{:.6g}}}\n", name, fmt::join(array.values, ", "));
  };
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    add(graph.input_name(i), source.OfInput<double>(graph, i));
  }
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (node.op != OpKind::kConstant || !node.constant->inline_bytes.empty()) continue;
    add(fmt::format("v{}", id), source.OfConstant<double>(node));
  }
  return text;
}

}  // namespace

std::string_view ArithmeticName(Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::kField:
      return "field";
    case Arithmetic::kRationals:
      return "rationals";
    case Arithmetic::kFloat64:
      return "float64";
  }
  return "";
}

Comparison Compare(const Graph& before, const Graph& after, const CompareOptions& options) {
  const Source source(before, options);
  Comparison out;
  const bool floats = CompareFloats(before, after, source, options.relative_to_inputs, &out);
  const bool close = floats && out.float_error <= options.tolerance;
  out.non_finite = floats && !close && HasNonFinite(before, source);
  Verdict field = Verdict::kUnknown, rationals = Verdict::kUnknown;
  if (options.values != Values::kNonFinite) {
    field = CompareExactly<Residue>(before, after, source);
    if (field != Verdict::kEqual) rationals = CompareExactly<Rational>(before, after, source);
  }
  out.computed = floats || field != Verdict::kUnknown || rationals != Verdict::kUnknown;
  out.arithmetic = field == Verdict::kEqual       ? Arithmetic::kField
                   : rationals == Verdict::kEqual ? Arithmetic::kRationals
                                                  : Arithmetic::kFloat64;
  const Meaning meaning = MeaningOf(before, after);
  const bool different = (rationals == Verdict::kDifferent && meaning != Meaning::kNone) ||
                         (rationals == Verdict::kUnknown && field == Verdict::kDifferent &&
                          meaning == Meaning::kArithmetic);
  out.equal = close || (!floats && out.arithmetic != Arithmetic::kFloat64);
  if (different && !options.approximate_constants) out.equal = false;
  if (out.float_error > 0) out.difference += ValuesOf(before, source);
  if (!out.equal && out.difference.empty()) {
    out.difference = "the outputs differ in exact arithmetic\n" + ValuesOf(before, source);
  }
  return out;
}

Comparison Compare(const Graph& before, const Graph& after, uint64_t seed) {
  return Compare(before, after, {.seed = seed});
}

}  // namespace ag
