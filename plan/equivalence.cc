#include "plan/equivalence.h"

#include <algorithm>
#include <cmath>

namespace ag {
namespace {

// Elements below this fraction of the largest one do not count for max_elementwise.
constexpr double kElementwiseFloor = 1e-3;

double LargestFinite(const Tensor& tensor) {
  double largest = 0;
  for (int64_t i = 0; i < tensor.type().NumElements(); ++i) {
    const double v = std::abs(tensor.At(i));
    if (std::isfinite(v)) largest = std::max(largest, v);
  }
  return largest;
}

bool SameNonfinite(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// Returns the differences of f(a_i) and f(b_i) over all elements.
template <class F>
OutputError CompareMapped(const Tensor& expected, const Tensor& actual, double largest, F f) {
  OutputError error;
  for (int64_t i = 0; i < expected.type().NumElements(); ++i) {
    const double a = f(expected.At(i)), b = f(actual.At(i));
    if (!std::isfinite(a) || !std::isfinite(b)) {
      error.nonfinite_differs |= !SameNonfinite(a, b);
      continue;
    }
    const double difference = std::abs(a - b);
    error.max_abs = std::max(error.max_abs, difference);
    if (std::abs(a) > kElementwiseFloor * largest) {
      error.max_elementwise = std::max(error.max_elementwise, difference / std::abs(a));
    }
  }
  if (error.max_abs > 0) {
    error.max_rel = largest > 0 ? error.max_abs / largest : 1.0;
  }
  return error;
}

// Returns log(p); probabilities that fp32 does not resolve count as equal.
double LogProbability(double p) { return std::log(std::max(p, 1e-12)); }

}  // namespace

OutputError CompareTensors(const std::string& name, const Tensor& expected, const Tensor& actual) {
  OutputError error;
  if (expected.type() != actual.type()) {
    error.nonfinite_differs = true;
  } else if (expected.type().dtype == DType::kString) {
    error.max_rel = error.max_abs = expected.bytes() == actual.bytes() ? 0 : 1;
  } else {
    error = CompareMapped(expected, actual, LargestFinite(expected), [](double v) { return v; });
    if (!IsFloat(expected.type().dtype) && error.max_abs > 0) error.max_rel = 1;
  }
  error.name = name;
  return error;
}

OutputError CompareOutput(const Graph& graph, size_t output, const Tensor& expected,
                          const Tensor& actual) {
  const GraphOutput& out = graph.outputs()[output];
  OutputError error = CompareTensors(out.name, expected, actual);
  if (graph.node(out.edge.node).op != OpKind::kSoftmax || expected.type() != actual.type()) {
    return error;
  }
  double largest = 0;
  for (int64_t i = 0; i < expected.type().NumElements(); ++i) {
    largest = std::max(largest, std::abs(LogProbability(expected.At(i))));
  }
  const OutputError logs = CompareMapped(expected, actual, largest, LogProbability);
  error.max_rel = std::max(error.max_rel, logs.max_rel);
  return error;  // Infinities and NaNs are the same in both.
}

OutputError Larger(const OutputError& a, const OutputError& b) {
  OutputError larger = a;
  larger.max_abs = std::max(a.max_abs, b.max_abs);
  larger.max_rel = std::max(a.max_rel, b.max_rel);
  larger.max_elementwise = std::max(a.max_elementwise, b.max_elementwise);
  larger.nonfinite_differs |= b.nonfinite_differs;
  return larger;
}

bool IsEquivalent(const OutputError& error, double tolerance) {
  return !error.nonfinite_differs && error.max_rel <= tolerance;
}

double KernelTolerance(std::string_view precision) {
  if (precision == "tf32") return 4e-3;
  if (precision == "fp16") return 6e-3;
  return precision == "bf16" ? 5e-2 : 1e-4;
}

}  // namespace ag
