// The numbers that a function of graph/functions.def takes besides its operands. Pure function.
#pragma once

#include <array>

#include "graph/graph.h"

namespace ag {

// Returns p and q: the operator's attributes in the order of their names; zeros where it has fewer.
// REQUIRES: the operator has a function in graph/functions.def.
inline std::array<double, 2> FunctionNumbers(const Node& node) {
  std::array<double, 2> numbers{};
  size_t count = 0;
  for (const AttributeSchema& schema : Info(node.op).attributes) {
    AG_CHECK(count < numbers.size() && (schema.kind == 'f' || schema.kind == 'i'));
    numbers[count++] =
        schema.kind == 'f' ? node.Float(schema.name) : static_cast<double>(node.Int(schema.name));
  }
  return numbers;
}

}  // namespace ag
