// The predicted time of a graph under a device spec. Dynamic programming over the spec's patterns
// forms groups (the operator fusion of AutoGTCO), layouts are chosen, and group times give one
// number. Functions are thread-safe when their GroupTimes is.
#pragma once

#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "plan/group_problem.h"
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
  int busy_cores = 0;           // As Measurement::busy_cores.
  // By how much two measurements of one group may differ; 0 for estimates and simulated times.
  double noise_ns = 0;
  bool measured() const { return state == TimeState::kMeasured; }
};

// The cost of groups: the fewest groups whose measurement failed, then the least time.
struct Cost {
  double failed = 0;
  double ns = 0;
  static Cost Of(const GroupTime& time) {
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

// Returns max(flops / peak, bytes / bandwidth) + launch, the estimate without a measurement. Peak
// and cache bandwidth grow with problem.cores (0: all), or with the cores that the group takes
// (CoresTaken). A quarter of the cores can use the whole memory bandwidth. The bytes of a cold
// problem always move at the rate of memory. A convolution in channels_last whose channels are no
// multiple of DeviceSpec::channel_bytes also moves padded copies of its tensors; each copy is a
// launch of its own.
double RooflineNs(const GroupProblem& problem, const DeviceSpec& spec);

// A source of group times. Implementations are thread-safe.
class GroupTimes {
 public:
  virtual ~GroupTimes() = default;
  virtual GroupTime Time(const GroupProblem& problem) = 0;

  // A cache for FormGroups, which asks Lookup before Time, so that it need not extract the problem.
  // Lookup returns the time that Insert stored for the key, if the implementation stores times.
  virtual std::optional<GroupTime> Lookup(const LocalKey&) { return std::nullopt; }
  virtual void Insert(const LocalKey&, const GroupTime&) {}
};

// Returns the roofline of the spec. The spec must outlive it.
class RooflineTimes : public GroupTimes {
 public:
  explicit RooflineTimes(const DeviceSpec& spec) : spec_(spec) {}  // Borrowed.
  GroupTime Time(const GroupProblem& problem) override {
    return {.ns = RooflineNs(problem, spec_)};
  }

 private:
  const DeviceSpec& spec_;
};

struct GroupingOptions {
  bool grouped = true;  // False: every operator is its own group (`eager`).
  int cores = 0;        // Cores per group; 0: all.
  // The layout that contractions prefer: a contraction takes it when its pattern lists it and it
  // fits, else the first fitting layout of the pattern. Nothing: the layout of LayoutChoices with
  // the cheapest groups, including reorders.
  std::optional<Layout> layout = std::nullopt;
  // Whether the layout may change along the graph where that is cheaper (plan/layout_runs.h). True
  // for plans that will run; false compares graphs well enough in a search, and forms one cover
  // less: it takes channels_last8 wherever that pads channels.
  bool mixed_layouts = false;
};

// Returns the layouts that contractions of `graph` may prefer on this device, in the order of its
// patterns, at least one. Plain is included only when there is no other, channels_last8 only when
// it pads the channels of a contraction.
std::vector<Layout> LayoutChoices(const Graph& graph, const DeviceSpec& spec);

// Returns groups with layouts and reorders, without schedule and places: the cover of the graph by
// the spec's patterns with the least Cost (exact on trees of single-reader edges).
// Several operators stay in one group unless other groups are cheaper by more than the noise of its
// time: in a measurement of one group alone, its inputs lie in the caches.
// kUnimplemented: no pattern of the device takes an operator, which the message names.
//
// A group is a path: each operator reads the one before by an edge that has no other reader.
// Layouts are chosen first (options.layout, plan/node_layouts.h), so a group's time does not depend
// on its neighbours. A movement operator is a view, which costs nothing, where plan/views.h allows
// it. One reorder per edge and layout serves all readers. Groups are in topological order.
// Deterministic.
StatusOr<std::vector<Group>> FormGroups(const Graph& graph, const DeviceSpec& spec,
                                        const Policy& policy, GroupTimes& times,
                                        const GroupingOptions& options = {});

// Groups with their times: times[i] belongs to groups[i] and is 0 for a view. Measured times also
// fill in `kernel`.
struct TimedGroups {
  std::vector<Group> groups;
  std::vector<GroupTime> times;
};
// Returns the groups of FormGroups with the times that it computed anyway.
StatusOr<TimedGroups> FormTimedGroups(const Graph& graph, const DeviceSpec& spec,
                                      const Policy& policy, GroupTimes& times,
                                      const GroupingOptions& options = {});

// Returns the paper's estimate (AutoGraph, AAAI 2023): the sum over all groups + alpha x the sum
// over the groups of the critical path.
double MixedEstimateNs(const Graph& graph, const std::vector<Group>& groups,
                       const std::vector<double>& group_ns, double alpha);

// Returns for each groups[j] the groups that must end before it begins, ascending. Views are in no
// list: a reader of a view depends on the groups that the view depends on.
std::vector<std::vector<int>> GroupDependencies(const Graph& graph,
                                                const std::vector<Group>& groups);

}  // namespace ag
