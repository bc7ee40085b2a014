// Comparison of two graphs with the same inputs and outputs: in exact arithmetic where it exists,
// and in double precision. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "graph/graph.h"

namespace ag {

// From strong to weak. In the field max, relu and similar functions are uninterpreted; rationals
// compute them.
enum class Arithmetic : uint8_t { kField = 0, kRationals = 1, kFloat64 = 2 };
std::string_view ArithmeticName(Arithmetic arithmetic);

// The values of inputs and constants; scalar constants keep their own. Integers are small; those
// that a gather reads are indices.
enum class Values : uint8_t {
  // Any values. With every second seed doubles are positive, so that roots and logarithms exist.
  kRandom,
  kSmall,     // Whole numbers in [-3, 3], for counter-examples that people can check.
  kNonFinite  // As kRandom, with Inf, -Inf and NaN; in double only.
};

struct CompareOptions {
  uint64_t seed = 1;
  Values values = Values::kRandom;
  // Doubles that differ by at most this fraction of the output's largest element count as equal.
  // Instances are f64 throughout, so only the order of operations separates the two sides.
  double tolerance = 1e-9;
  // The graphs hold constants that stand for irrational numbers. Then a difference in exact
  // arithmetic means nothing.
  bool approximate_constants = false;
  // Differences are relative to the largest input when it is larger than the output. A product
  // close to zero says nothing about a constant in it.
  bool relative_to_inputs = false;
};

struct Comparison {
  bool computed = false;  // False: no arithmetic could run the graphs.
  bool equal = false;
  Arithmetic arithmetic = Arithmetic::kField;  // The strongest one in which they agreed.
  // In double: the largest |a - b| over the largest |a| of each output (or over the largest input,
  // see CompareOptions::relative_to_inputs).
  double float_error = 0;
  // Set when the doubles are not close: `before` computes an Inf or a NaN somewhere.
  bool non_finite = false;
  std::string difference;  // The first element that differs in double, and the input values.
};

// Compares two graphs. Equal: equal in an exact arithmetic or, where an operator has no exact
// meaning (tanh over the rationals), close in double. When an arithmetic computes all operators of
// both graphs, its "different" is final, however close the doubles are. REQUIRES: the graphs have
// the same inputs and outputs.
Comparison Compare(const Graph& before, const Graph& after, const CompareOptions& options);
Comparison Compare(const Graph& before, const Graph& after, uint64_t seed);

}  // namespace ag
