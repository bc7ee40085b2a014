// Values of the functions of graph/functions.def, one case a line, for the tests of all who compute
// them: the reference kernels, the CPU's chains and post-ops, generated CUDA text, import and
// export. Constant table.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "graph/op_kind.h"

namespace ag {

struct FunctionCase {
  std::string_view name;
  std::string_view text;               // A call in the text form, of x and maybe y.
  std::initializer_list<double> x, y;  // The operands; y is empty where there is one.
  std::initializer_list<double> expected;
};

// The first case of an operator is continuous, so that it may follow what rounds.
std::span<const FunctionCase> FunctionCases();

// Returns the operator of a case.
OpKind OpOf(const FunctionCase& c);

// Returns statements that end in the case's result "z", of operands x and y with this shape.
// `before`: statements that define x; "": x is an input.
std::string StatementsOf(const FunctionCase& c, std::string_view shape,
                         std::string_view before = "");

}  // namespace ag
