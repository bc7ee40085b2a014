// Whether two graphs with the same inputs and outputs compute the same: in exact arithmetic where
// it can be had, and in double precision.
#pragma once

#include <string>
#include <string_view>

#include "graph/graph.h"

namespace ag {

// From strong to weak. The field takes max, relu and the like as uninterpreted; rationals compute
// them.
enum class Arithmetic : uint8_t { kField = 0, kRationals = 1, kFloat64 = 2 };
std::string_view ArithmeticName(Arithmetic arithmetic);

// What inputs and constants hold; scalar constants keep their own values. Integers are small, as
// far as a gather reads them they are indices.
enum class Values : uint8_t {
  kRandom,    // Any; in every second seed doubles are positive, so that roots and logarithms exist.
  kSmall,     // Whole numbers in [-3, 3]: counter-examples that can be checked by hand.
  kNonFinite  // As kRandom, with Inf, -Inf and NaN among them; in double only.
};

struct CompareOptions {
  uint64_t seed = 1;
  Values values = Values::kRandom;
  // Differences in double up to this much of the output's largest element are rounding: instances
  // are f64 throughout, so only the order of operations separates the two sides.
  double tolerance = 1e-9;
  // The graphs hold constants that stand for irrational numbers: a difference in exact arithmetic
  // says nothing then.
  bool approximate_constants = false;
  // A difference counts against the largest input where that is larger than the output: what is
  // left of a product near its zero says nothing about a constant in it.
  bool relative_to_inputs = false;
};

struct Comparison {
  bool computed = false;  // False when no arithmetic could run the graphs.
  bool equal = false;
  Arithmetic arithmetic = Arithmetic::kField;  // The strongest in which they agreed.
  // Largest |a - b| over the largest |a| of each output (CompareOptions::relative_to_inputs), in
  // double.
  double float_error = 0;
  // Where they are not close in double: something that `before` computes is Inf or NaN there.
  bool non_finite = false;
  std::string difference;  // The first element that differs in double, and the values put in.
};

// Equal means: equal in an exact arithmetic, or (where operators have no exact meaning, as tanh
// has not over the rationals) close in double. Where an arithmetic knows all operators of both
// graphs its "different" is final, however close the doubles are.
// REQUIRES: the graphs have the same inputs and outputs.
Comparison Compare(const Graph& before, const Graph& after, const CompareOptions& options);
Comparison Compare(const Graph& before, const Graph& after, uint64_t seed);

}  // namespace ag
