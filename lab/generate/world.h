// Worlds: what the generator enumerates. A world is a few typed leaves, the operators that combine
// them, and the grid of attributes. Plain data; pure functions.
//
// Sizes are symbols ("A"). Each symbol has one value in every *shape assignment*, and a type is its
// shapes in all assignments: two sizes are equal only when they are equal in all of them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/attributes.h"
#include "graph/op_kind.h"
#include "graph/types.h"

namespace ag::generate {

// Written as in DefaultWorlds(): "A=2,3 B=3,4" and "x:A,B y:A,B".
struct World {
  std::string_view name;
  bool rationals = false;  // Exact arithmetic with order (max, relu), not the prime field.
  std::string_view sizes;
  std::string_view leaves;
  std::string_view ops;       // Text names of the operator table.
  int64_t elements_max = 48;  // Terms with more elements are left out.
};
std::span<const World> DefaultWorlds();

// Returns all operators of the default worlds, by text name, ascending.
std::vector<std::string> DefaultOps();

using Shapes = std::vector<Shape>;                  // One for each assignment.
using Grid = std::vector<std::vector<Attributes>>;  // Choices, each with one value per assignment.

struct Leaf {
  std::string name;
  Shapes shapes;
};

// A parsed world.
struct Universe {
  std::string name;
  bool rationals = false;
  int64_t elements_max = 0;
  std::vector<std::vector<int64_t>> sizes;  // Values of each symbol, by assignment.
  std::vector<Leaf> leaves;
  std::vector<OpKind> ops;
  size_t assignments() const { return leaves.empty() ? 0 : leaves[0].shapes.size(); }
};
// Returns the parsed world. kInvalidArgument: the text names an unknown size or operator.
StatusOr<Universe> ReadWorld(const World& world);

// Returns the attributes to try for `op` over operands of these shapes; some may be ill-typed.
Grid AttributeGrid(OpKind op, std::span<const Shapes* const> operands, const Universe& universe);

}  // namespace ag::generate
