#include "rules/compare.h"

#include <cmath>
#include <cstring>

#include "graph/evaluate_as.h"
#include "graph/tensor.h"

namespace ag {
namespace {

// Instances are f64 throughout, so only the order of operations separates the two sides: sums of at
// most a few hundred products, relative to the largest element.
constexpr double kFloatTolerance = 1e-9;

uint64_t SeedOf(const Digest& digest, uint64_t seed) {
  uint64_t word = 0;
  std::memcpy(&word, digest.bytes.data(), sizeof(word));
  return word ^ seed;
}

// In half of the cases all numbers are positive: roots and logarithms of them exist.
template <class T>
Array<T> Draw(const TensorType& type, uint64_t seed, bool positive) {
  Array<T> array = RandomArray<T>(type, seed);
  if constexpr (std::is_same_v<T, double>) {
    if (positive) {
      for (double& value : array.values) value = std::fabs(value) + 0.125;
    }
  }
  return array;
}

template <class T>
StatusOr<std::vector<Array<T>>> Run(const Graph& graph, uint64_t seed) {
  const bool positive = seed % 2 == 0;
  std::vector<Array<T>> inputs;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const TensorType& type = graph.type({graph.inputs()[i], 0});
    inputs.push_back(Draw<T>(type, SeedOf(Sha256(graph.input_name(i)), seed), positive));
  }
  return EvaluateAs<T>(graph, inputs, [&](NodeId id) -> StatusOr<Array<T>> {
    const Node& node = graph.node(id);
    const TensorType& type = node.outputs[0];
    const std::string& bytes = node.constant->inline_bytes;
    if (bytes.empty()) return Draw<T>(type, SeedOf(node.constant->digest, seed), positive);
    const Tensor tensor = Tensor::View(type, bytes, node.constant);
    std::vector<double> values;
    for (int64_t i = 0; i < type.NumElements(); ++i) values.push_back(tensor.At(i));
    return ArrayOf<T>(type.shape, values);
  });
}

enum class Verdict { kEqual, kDifferent, kUnknown };

template <class T>
Verdict CompareExactly(const Graph& before, const Graph& after, uint64_t seed) {
  const auto a = Run<T>(before, seed);
  const auto b = Run<T>(after, seed);
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

// Fills in float_error and, where it is not zero, the difference.
bool CompareFloats(const Graph& before, const Graph& after, uint64_t seed, Comparison* out) {
  const auto a = Run<double>(before, seed);
  const auto b = Run<double>(after, seed);
  if (!a.ok() || !b.ok()) return false;
  for (size_t i = 0; i < a->size(); ++i) {
    double scale = 1e-30;
    for (const double value : (*a)[i].values) {
      if (std::isfinite(value)) scale = std::max(scale, std::fabs(value));
    }
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

std::string InputValues(const Graph& graph, uint64_t seed) {
  std::string text;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const TensorType& type = graph.type({graph.inputs()[i], 0});
    if (type.NumElements() > 16) continue;
    const auto array = Draw<double>(type, SeedOf(Sha256(graph.input_name(i)), seed), seed % 2 == 0);
    text += fmt::format("{} = {{{:.4g}}}\n", graph.input_name(i), fmt::join(array.values, ", "));
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

Comparison Compare(const Graph& before, const Graph& after, uint64_t seed) {
  Comparison out;
  const bool floats = CompareFloats(before, after, seed, &out);
  const bool close = floats && out.float_error <= kFloatTolerance;
  const Verdict field = CompareExactly<Residue>(before, after, seed);
  Verdict rationals = Verdict::kUnknown;
  if (field != Verdict::kEqual) rationals = CompareExactly<Rational>(before, after, seed);
  out.computed = floats || field != Verdict::kUnknown || rationals != Verdict::kUnknown;
  out.arithmetic = field == Verdict::kEqual       ? Arithmetic::kField
                   : rationals == Verdict::kEqual ? Arithmetic::kRationals
                                                  : Arithmetic::kFloat64;
  out.equal = close || (!floats && out.arithmetic != Arithmetic::kFloat64);
  if (out.float_error > 0) out.difference += InputValues(before, seed);
  if (!out.equal && out.difference.empty())
    out.difference = "the outputs differ in exact arithmetic\n";
  return out;
}

}  // namespace ag
