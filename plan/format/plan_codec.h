// The stored form of a plan. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "plan/plan.h"

namespace ag {

// Versioned bytes (docs/plan.md). Hostile bytes give kDataLoss, never a crash.
inline constexpr uint32_t kPlanBytesVersion = 1;
inline constexpr uint32_t kSegmentsVersion = 2;  // Of plans in segments.
inline constexpr uint32_t kBesideVersion = 3;    // Of those with runs beside each other.
std::string EncodePlan(const Plan& plan);
StatusOr<Plan> DecodePlan(std::string_view bytes);

}  // namespace ag
