#include "client/cli/timing_text.h"

#include <nlohmann/json.hpp>

#include "base/text.h"

namespace ag {

using Json = nlohmann::ordered_json;

Json LatencyJson(const Latency& latency) {
  return {{"median", latency.median_ns / 1e6},
          {"low", latency.low_ns / 1e6},
          {"high", latency.high_ns / 1e6}};
}

Json TimingJson(const std::string& name, const PlanTiming& timing) {
  return {{"name", name},
          {"latency_ms", LatencyJson(timing.latency)},
          {"speedup", timing.speedup},
          {"speedup_low", timing.speedup_low},
          {"speedup_high", timing.speedup_high},
          {"verdict", VerdictName(timing.verdict)},
          {"blocks", timing.blocks},
          {"discarded", timing.discarded}};
}

std::string LatencyText(const Latency& latency) {
  return fmt::format("{:>10.3f} ms  ({:.3f} to {:.3f})", latency.median_ns / 1e6,
                     latency.low_ns / 1e6, latency.high_ns / 1e6);
}

}  // namespace ag
