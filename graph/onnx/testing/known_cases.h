// ONNX's node tests that do not pass here, and why. docs/operators.md lists them.
#pragma once

#include <span>
#include <string_view>

namespace ag::testing {

struct KnownCase {
  std::string_view prefix;  // Of the test's name; "." at its end: the whole name before it.
  std::string_view why;
};

// Those of operators without a kernel, and of other domains.
std::span<const KnownCase> RefusedCases();
// Those whose data say otherwise, at least in one version of ONNX; in others they pass.
std::span<const KnownCase> DifferentCases();

// Returns the first one for a test, else null.
const KnownCase* FindCase(std::span<const KnownCase> cases, std::string_view test);

}  // namespace ag::testing
