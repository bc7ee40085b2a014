#include "client/cli/timing_text.h"

#include <nlohmann/json.hpp>

#include "autograph/v1/measurement.pb.h"
#include "wire/json_wire.h"
#include "wire/measurement_wire.h"

namespace ag {

namespace v1 = autograph::v1;
using Json = nlohmann::ordered_json;

Json LatencyJson(const Latency& latency) {
  v1::Latency proto;
  ToProto(latency, &proto);
  return Json::parse(ToJson(proto));
}

Json TimingJson(const std::string& name, const PlanTiming& timing) {
  v1::PlanTiming proto;
  ToProto(timing, &proto);
  Json json = {{"name", name}};
  json.update(Json::parse(ToJson(proto)));
  return json;
}

std::string LatencyText(const Latency& latency) {
  return fmt::format("{:>10.3f} ms  ({:.3f} to {:.3f})", latency.median_ns / 1e6,
                     latency.low_ns / 1e6, latency.high_ns / 1e6);
}

}  // namespace ag
