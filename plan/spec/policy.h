// The caller's requirements for the answer; part of every key. Plain data and pure functions.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "graph/graph.h"

namespace ag {

struct Policy {
  std::string precision = "fp32";  // fp32 | tf32 | fp16 | bf16, if the device offers it.
  double tolerance = 1e-3;         // Largest |a-b| / max|a| per output that counts as equivalent.
  bool cold_cache = false;         // The device's caches are evicted before every timed run.
  bool nonfinite_strict = false;   // Keep Inf and NaN exactly: rules of class "finite" are off.

  bool operator==(const Policy&) const = default;
  std::string Text() const;  // Canonical "precision=fp32;tolerance=0.001;...".
};

// Returns the tolerance when the caller gives none: the rounding errors of a whole network in that
// precision.
double DefaultTolerance(std::string_view precision);

// Returns the precision whose rounding errors a graph's results have that runs in `precision`: its
// own f16 or bf16 values are rounded to their type whatever the kernels compute in.
std::string_view CoarsestPrecision(std::string_view precision, const Graph& graph);

// Returns the policy of a Text(). Missing keys keep their default, so "" is the default policy.
// kInvalidArgument: an unknown key or a value that does not fit; the message names it.
StatusOr<Policy> ParsePolicy(std::string_view text);

}  // namespace ag
