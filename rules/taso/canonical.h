// What a graph computes, up to what our search takes for granted: names of operators, the order and
// grouping of sums and products (axiom A1: add and mul are n-ary), and the value of everything that
// depends on constants alone (it is folded before anything runs).
#pragma once

#include <string>

#include "graph/graph.h"

namespace ag {

enum class TasoForm {
  kAsWritten,  // Two operands of a commutative operator in either order.
  kRegrouped,  // Sums and products also in any grouping.
};

// Equal strings: the graphs compute the same by these laws. Constant parts count by their value in
// a prime field (a chance of 2^-61 per element that different ones agree); inputs by their names.
std::string TasoFormOf(const Graph& graph, TasoForm form);

}  // namespace ag
