// A normal form of a graph's computation under the laws that our search assumes: names of operators
// do not matter, nor do order and grouping of sums and products (axiom A1: add and mul are n-ary),
// and constant parts count by their value, because they are folded before anything runs. Pure
// functions.
#pragma once

#include <string>

#include "graph/graph.h"

namespace ag {

enum class TasoForm {
  kAsWritten,  // The operands of a commutative operator in either order.
  kRegrouped,  // Sums and products also in any grouping.
};

// Returns a text; equal texts mean equal computations under these laws. Constant parts appear as
// values in a prime field (different elements agree with a probability of 2^-61), inputs as their
// names.
std::string TasoFormOf(const Graph& graph, TasoForm form);

}  // namespace ag
