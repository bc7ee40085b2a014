// The time of one group: measured, or estimated by the roofline of a device spec.
#pragma once

#include <limits>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "plan/fusion/group_problem.h"
#include "plan/measurement.h"
#include "plan/plan.h"

namespace ag {

// How the time of a group is known.
enum class TimeState : uint8_t { kEstimated, kMeasured, kFailed };

struct GroupTime {
  double ns = 0;  // A failed group's is an estimate; costs compare the state first.
  TimeState state = TimeState::kEstimated;
  Status failure = OkStatus();  // kFailed: why the measurement failed.
  std::string kernel;           // The fastest kernel of the measurement.
  int active_cores = 0;         // As Measurement::active_cores, or of the estimate.
  // By how much two measurements of one group may differ; 0 for estimates and simulated times.
  double noise_ns = 0;
  bool measured() const { return state == TimeState::kMeasured; }
};

// The part of a GroupTime that covers and estimates read.
struct BriefTime {
  double ns = 0;
  double noise_ns = 0;
  int active_cores = 0;
  TimeState state = TimeState::kEstimated;
  static BriefTime Of(const GroupTime& time) {
    return {time.ns, time.noise_ns, time.active_cores, time.state};
  }
};

// The cost of groups: the fewest groups whose measurement failed, then the least time.
struct Cost {
  double failed = 0;
  double ns = 0;
  static Cost Of(const BriefTime& time) {
    return {time.state == TimeState::kFailed ? 1.0 : 0.0, time.ns};
  }
  friend Cost operator+(Cost a, Cost b) { return {a.failed + b.failed, a.ns + b.ns}; }
  friend Cost operator-(Cost a, Cost b) { return {a.failed - b.failed, a.ns - b.ns}; }
  Cost& operator+=(Cost other) { return *this = *this + other; }
  auto operator<=>(const Cost&) const = default;
};
inline constexpr Cost kInfiniteCost{std::numeric_limits<double>::infinity(),
                                    std::numeric_limits<double>::infinity()};

// Returns the measured time as grouping reads it.
GroupTime GroupTimeOf(const Measurement& measurement);

// A 128-bit hash of everything that a group's problem depends on, computed from the nodes in place.
// Equal keys mean equal problems. Valid in one process only; stored keys are GroupKey.
struct LocalKey {
  uint64_t a = 0;
  uint64_t b = 0;
  bool operator==(const LocalKey&) const = default;
  template <class H>
  friend H AbslHashValue(H h, const LocalKey& key) {
    return H::combine(std::move(h), key.a);
  }
};

// What is expected of a group before it is measured.
struct GroupEstimate {
  double ns = 0;
  // As Measurement::active_cores, where the shape of a contraction decides; 0: as ShareOf says.
  int active_cores = 0;
};

// Returns the least time of the spec's kernel families for the group (kernel_estimate.h); where it
// lists none, max(flops / peak, bytes / bandwidth) + launch, the estimate without a measurement.
// Peak and cache bandwidth grow with problem.cores (0: all), or with the cores that the group takes
// (CoresTaken). A quarter of the cores can use the whole memory bandwidth. The bytes of a cold
// problem always move at the rate of memory. A convolution in channels_last whose channels are no
// multiple of DeviceSpec::channel_bytes also moves padded copies of its tensors; each copy is a
// launch of its own.
//
// A contraction takes contraction_ns besides. On a device with core_bytes_per_second it takes a
// core for each of its blocks (BlocksOf), which also load their operands at that rate. With
// split_ns each sum may be shared by 2, 4, ... kSplitMax blocks, at most as many as there are cores
// for, where that is faster: the parts, four bytes an output, are then written, read and added up.
GroupEstimate EstimateGroup(const GroupProblem& problem, const DeviceSpec& spec);

// Returns the time of EstimateGroup.
double RooflineNs(const GroupProblem& problem, const DeviceSpec& spec);

// A source of group times. Implementations are thread-safe.
class GroupTimes {
 public:
  virtual ~GroupTimes() = default;
  virtual GroupTime Time(const GroupProblem& problem) = 0;

  using MakeProblem = absl::FunctionRef<GroupProblem()>;
  // Returns Time(make()), the time of the group with this key. An implementation may remember times
  // by their keys, so that FormGroups need not extract the problem.
  virtual GroupTime TimeOf(const LocalKey&, MakeProblem make) { return Time(make()); }
  // Returns the part of TimeOf that covers read.
  virtual BriefTime BriefTimeOf(const LocalKey& key, MakeProblem make) {
    return BriefTime::Of(TimeOf(key, make));
  }
};

// Returns the roofline of the spec. The spec must outlive it.
class RooflineTimes : public GroupTimes {
 public:
  explicit RooflineTimes(const DeviceSpec& spec) : spec_(spec) {}  // Borrowed.
  GroupTime Time(const GroupProblem& problem) override {
    const GroupEstimate estimate = EstimateGroup(problem, spec_);
    return {.ns = estimate.ns, .active_cores = estimate.active_cores};
  }

 private:
  const DeviceSpec& spec_;
};

}  // namespace ag
