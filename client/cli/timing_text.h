// Timings of plans as text for people and as JSON, for every form of `bench`. Pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "plan/measurement.h"

namespace ag {

// {median, low, high} in milliseconds.
nlohmann::ordered_json LatencyJson(const Latency& latency);

// {name, latency_ms, speedup, speedup_low, speedup_high, verdict, blocks, discarded}.
nlohmann::ordered_json TimingJson(const std::string& name, const PlanTiming& timing);

// "0.412 ms  (0.410 to 0.415)", the number right-aligned.
std::string LatencyText(const Latency& latency);

}  // namespace ag
