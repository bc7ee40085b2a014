#include "device/sim/traits.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "plan/schedule/contention_model.h"

namespace ag::sim {
namespace {

constexpr std::pair<std::string_view, Fault::Kind> kFaults[] = {
    {"crash", Fault::Kind::kCrash},
    {"hang", Fault::Kind::kHang},
    {"wrong", Fault::Kind::kWrong},
    {"sticky", Fault::Kind::kSticky},
};

StatusOr<double> Number(std::string_view key, const std::string& text, double high) {
  std::istringstream in(text);
  double value = 0;
  if (!(in >> value) || !in.eof() || !(value >= 0) || value > high) {
    return Err(StatusCode::kInvalidArgument, "{}: expected a number in [0, {}], got \"{}\"", key,
               high, text);
  }
  return value;
}

Status ParseNoise(const std::string& value, Traits* traits) {
  const size_t blank = value.find(' ');
  const std::string shape = value.substr(0, blank);
  if (blank == std::string::npos || (shape != "gaussian" && shape != "heavy-tail")) {
    return Err(StatusCode::kInvalidArgument,
               "noise: expected gaussian or heavy-tail and a fraction, got \"{}\"", value);
  }
  traits->heavy_tail = shape == "heavy-tail";
  AG_LET(traits->noise, Number("noise", value.substr(blank + 1), 1));
  return OkStatus();
}

Status ParseFault(const std::string& value, const DeviceSpec& spec, Traits* traits) {
  const size_t blank = value.find(' ');
  const auto kind = std::find_if(std::begin(kFaults), std::end(kFaults), [&](const auto& fault) {
    return fault.first == value.substr(0, blank);
  });
  if (blank == std::string::npos || kind == std::end(kFaults)) {
    return Err(StatusCode::kInvalidArgument,
               "fault: expected crash, hang, wrong or sticky and a target, got \"{}\"", value);
  }
  const std::string target = value.substr(blank + 1);
  const auto ops = AllOps();
  const bool known =
      spec.FindPattern(target) != nullptr ||
      std::any_of(ops.begin(), ops.end(), [&](const OpInfo& op) { return op.name == target; });
  if (!known) {
    return Err(StatusCode::kInvalidArgument, "fault: \"{}\" is neither a pattern nor an operator",
               target);
  }
  traits->faults.push_back({kind->second, target});
  return OkStatus();
}

}  // namespace

bool Fault::Hits(const Graph& graph, const Plan& plan) const {
  return std::any_of(plan.groups.begin(), plan.groups.end(), [&](const Group& group) {
    return group.pattern == target ||
           std::any_of(group.nodes.begin(), group.nodes.end(),
                       [&](NodeId id) { return Info(graph.node(id).op).name == target; });
  });
}

StatusOr<Traits> ParseTraits(const DeviceSpec& spec) {
  Traits traits;
  for (const auto& [key, value] : spec.extra) {
    if (key == "noise") AG_TRY(ParseNoise(value, &traits));
    if (key == "fault") AG_TRY(ParseFault(value, spec, &traits));
    if (key == "drift") {
      AG_LET(traits.drift, Number(key, value, 100));
    }
    if (key == "scatter") {
      AG_LET(traits.scatter, Number(key, value, 100));
    }
    if (key == "overlap") {
      AG_LET(traits.overlap, Number(key, value, kOverlapMax));
    }
    if (key == "seed") {
      AG_LET(const double seed, Number(key, value, 1e15));
      traits.seed = static_cast<uint64_t>(seed);
    }
  }
  return traits;
}

double NoiseFactor(const Traits& traits, Random* random) {
  if (traits.noise == 0) return 1;
  double factor = std::exp(traits.noise * random->Normal());  // Never zero or negative.
  if (traits.heavy_tail && random->Below(20) == 0) factor *= 1 + 4 * random->Unit();
  return factor;
}

}  // namespace ag::sim
