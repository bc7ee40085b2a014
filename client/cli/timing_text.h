// Timings of plans as text for people and as JSON, for every form of `bench`. Pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "plan/measurement.h"

namespace ag {

// The message Latency: {median_ns, low_ns, high_ns}.
nlohmann::ordered_json LatencyJson(const Latency& latency);

// {name} and the message PlanTiming: {latency, speedup, speedup_low, speedup_high, verdict, ...}.
nlohmann::ordered_json TimingJson(const std::string& name, const PlanTiming& timing);

// "0.412 ms  (0.410 to 0.415)", the number right-aligned.
std::string LatencyText(const Latency& latency);

}  // namespace ag
