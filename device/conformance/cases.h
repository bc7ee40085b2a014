// The graphs of the conformance suite in text form, with "; " between statements, one case a line.
// Constant tables.
#pragma once

#include <span>
#include <string_view>

namespace ag {

struct ConformanceCase {
  std::string_view name;
  std::string_view text;
};

// Returns every operator in its forms: odd sizes, groups, dilations, uneven padding, broadcasts,
// axes of size 1.
std::span<const ConformanceCase> OperatorCases();

// Returns operators in sequence, as patterns fuse them, and small whole networks with branches.
std::span<const ConformanceCase> NetworkCases();

}  // namespace ag
