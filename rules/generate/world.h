// What the generator enumerates over: worlds, each a few typed leaves and the operators that
// combine them, and the attribute grid. Plain data; pure functions.
//
// Sizes are symbols ("A"), and every symbol has one value for each *shape assignment*: a type is
// its shapes in all assignments, so two sizes are equal only when they are equal in each of them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/attributes.h"
#include "graph/op_kind.h"
#include "graph/types.h"

namespace ag::generate {

// As written in DefaultWorlds(): "A=2,3 B=3,4" and "x:A,B y:A,B".
struct World {
  std::string_view name;
  bool rationals = false;  // Exact order arithmetic (max, relu) instead of the prime field.
  std::string_view sizes;
  std::string_view leaves;
  std::string_view ops;       // Text names of the operator table.
  int64_t elements_max = 48;  // Terms with larger values are left out.
};
std::span<const World> DefaultWorlds();

// All operators of the default worlds, by text name, ascending.
std::vector<std::string> DefaultOps();

using Shapes = std::vector<Shape>;                  // One for each assignment.
using Grid = std::vector<std::vector<Attributes>>;  // Choices, each with one value per assignment.

struct Leaf {
  std::string name;
  Shapes shapes;
};

// A world's text taken apart.
struct Universe {
  std::string name;
  bool rationals = false;
  int64_t elements_max = 0;
  std::vector<std::vector<int64_t>> sizes;  // Values of each symbol, by assignment.
  std::vector<Leaf> leaves;
  std::vector<OpKind> ops;
  size_t assignments() const { return leaves.empty() ? 0 : leaves[0].shapes.size(); }
};
// kInvalidArgument: the text names an unknown size or operator.
StatusOr<Universe> ReadWorld(const World& world);

// The attributes that `op` is tried with over operands of these shapes; some may be ill-typed.
Grid AttributeGrid(OpKind op, std::span<const Shapes* const> operands, const Universe& universe);

}  // namespace ag::generate
