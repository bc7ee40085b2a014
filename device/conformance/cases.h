// The graphs of the conformance suite, in text form with "; " between statements: one case a line.
#pragma once

#include <string>
#include <vector>

namespace ag {

struct ConformanceCase {
  std::string name;
  std::string text;
};

// Every operator in its forms: odd sizes, groups, dilations, uneven padding, broadcasts, axes of
// size 1.
const std::vector<ConformanceCase>& OperatorCases();

// Operators one after another, as patterns fuse them, and small whole networks with branches.
const std::vector<ConformanceCase>& NetworkCases();

}  // namespace ag
