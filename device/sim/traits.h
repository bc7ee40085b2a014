// The traits of a simulated device beyond its rates: the noise of its times and its faults. Pure
// functions.
//
//   noise gaussian 0.02      normal noise, as a fraction of the time
//   noise heavy-tail 0.02    the same, and every twentieth time up to five times as long
//   drift 0.1                times grow by this fraction over the first second of device time
//   seed 7
//   scatter 0.5              each kernel of a group takes 1 to 1.5 times the estimate, by its name
//   overlap 0.6              how groups beside each other share the cores
//                            (plan/schedule/contention_model.h)
//   fault crash conv         a group of this pattern, or with this operator, ends the process
//   fault hang Softmax       ... never returns
//   fault wrong dense        ... gives wrong outputs
//   fault sticky MatMul      ... fails, and so does everything on this device from then on
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "plan/plan.h"

namespace ag::sim {

struct Fault {
  enum class Kind { kCrash, kHang, kWrong, kSticky };
  Kind kind = Kind::kCrash;
  std::string target;  // Pattern or operator name.

  bool Hits(const Graph& graph, const Plan& plan) const;
};

struct Traits {
  double noise = 0;
  bool heavy_tail = false;
  double drift = 0;
  uint64_t seed = 1;
  double scatter = 0;             // Of kernels' times, as a fraction of the estimate.
  std::optional<double> overlap;  // Nothing: as the recording's pairs say, else 1.
  std::vector<Fault> faults;
};

// Returns the traits in the spec. kInvalidArgument names the line's word and the expected value.
StatusOr<Traits> ParseTraits(const DeviceSpec& spec);

// Returns a factor for one time: 1 without noise.
double NoiseFactor(const Traits& traits, Random* random);

}  // namespace ag::sim
