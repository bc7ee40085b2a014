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

struct Comparison {
  bool computed = false;  // False when no arithmetic could run the graphs.
  bool equal = false;
  Arithmetic arithmetic = Arithmetic::kField;  // The strongest in which they agreed.
  double float_error = 0;  // Largest |a - b| over the largest |a| of each output, in double.
  std::string difference;  // The first element that differs in double, and the inputs' values.
};

// Inputs and constants are random, drawn from `seed`; scalar constants have their own values.
// REQUIRES: the graphs have the same inputs and outputs.
Comparison Compare(const Graph& before, const Graph& after, uint64_t seed);

}  // namespace ag
