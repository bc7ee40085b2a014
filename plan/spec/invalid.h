// Errors for texts and plans that callers give. Pure functions.
#pragma once

#include <string>

#include "base/status.h"

namespace ag {

inline Status Invalid(const std::string& message) {
  return Status(StatusCode::kInvalidArgument, message);
}
inline Status InvalidPlan(const std::string& message) { return Invalid("plan: " + message); }

}  // namespace ag
