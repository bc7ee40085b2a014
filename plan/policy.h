// What the caller fixes about the answer; part of every key.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace ag {

struct Policy {
  std::string precision = "fp32";  // fp32 | tf32 | fp16 | bf16; a device says which it offers.
  double tolerance = 1e-3;         // Largest |a-b| / max|a| per output that is still equivalent.
  bool cold_cache = false;         // Every run that is timed finds the device's caches flushed.
  bool nonfinite_strict = false;   // Keep Inf and NaN exactly: rules of class "finite" are off.

  bool operator==(const Policy&) const = default;
  std::string Text() const;  // Canonical "precision=fp32;tolerance=0.001;..."
};

// What is taken for equivalent where the caller says nothing: the roundings of a whole network in
// that precision.
double DefaultTolerance(std::string_view precision);

// The inverse of Text(). Keys that are left out keep their default, so "" is the default policy.
// kInvalidArgument names an unknown key or a value that does not fit.
StatusOr<Policy> ParsePolicy(std::string_view text);

}  // namespace ag
