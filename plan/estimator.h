// Predicted time of a graph under a device spec: groups by dynamic programming over the spec's
// patterns (the operator fusion of AutoGTCO), layouts, then one number from group times.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/mutex.h"
#include "plan/group_problem.h"
#include "plan/measurement.h"
#include "plan/plan.h"

namespace ag {

// Answers what a group takes: a measurement when one is known, else the roofline of the spec.
// `measured` says which. Thread-safe implementations only.
struct GroupTime {
  double ns = 0;
  bool measured = false;
  std::string kernel;  // The measured best kernel.
  int busy_cores = 0;  // As Measurement::busy_cores.
  // By how much two measurements of one group may differ; 0 for estimates and simulated times.
  double noise_ns = 0;
};

// The measured time as grouping reads it.
GroupTime GroupTimeOf(const Measurement& measurement);

// A 128-bit hash of all that a group's problem depends on, made from the nodes where they stand:
// equal keys mean equal problems. For one process only; stored keys are GroupKey.
struct LocalKey {
  uint64_t a = 0;
  uint64_t b = 0;
  bool operator==(const LocalKey&) const = default;
  template <class H>
  friend H AbslHashValue(H h, const LocalKey& key) {
    return H::combine(std::move(h), key.a);
  }
};

// max(flops / peak, bytes / bandwidth) + launch; the estimate before any measurement. Compute and
// cache bandwidth grow with problem.cores (0: all) or with those that the group takes (CoresTaken);
// memory bandwidth is drawn in full by a quarter of them. A cold problem's bytes move at the rate
// of memory, however few they are. A convolution whose tensors have channels last, but not in whole
// DeviceSpec::channel_bytes, moves padded copies of them as well, each a launch of its own.
double RooflineNs(const GroupProblem& problem, const DeviceSpec& spec);

class GroupTimes {
 public:
  virtual ~GroupTimes() = default;
  virtual GroupTime Time(const GroupProblem& problem) = 0;

  // A short cut that saves cutting out the problem: what Time answered for the last group of the
  // same local key, when the implementation remembers. FormGroups asks Recall before Time.
  virtual std::optional<GroupTime> Recall(const LocalKey&) { return std::nullopt; }
  virtual void Remember(const LocalKey&, const GroupTime&) {}
};

// Asks the spec alone.
class RooflineTimes : public GroupTimes {
 public:
  explicit RooflineTimes(const DeviceSpec& spec) : spec_(spec) {}  // Borrowed.
  GroupTime Time(const GroupProblem& problem) override {
    return {.ns = RooflineNs(problem, spec_)};
  }

 private:
  const DeviceSpec& spec_;
};

// Remembers what `inner` (borrowed) answered, by local key and across graphs, until Forget: what
// makes FormGroups fast enough to be called for each candidate of a search. Call Forget when
// `inner` learns (a measurement arrived).
class MemoizedGroupTimes : public GroupTimes {
 public:
  explicit MemoizedGroupTimes(GroupTimes& inner) : inner_(inner) {}
  GroupTime Time(const GroupProblem& problem) override { return inner_.Time(problem); }
  std::optional<GroupTime> Recall(const LocalKey& key) override;
  void Remember(const LocalKey& key, const GroupTime& time) override;
  void Forget();

 private:
  GroupTimes& inner_;
  Mutex mutex_;
  absl::flat_hash_map<LocalKey, GroupTime> known_ AG_GUARDED_BY(mutex_);
};

struct GroupingOptions {
  bool grouped = true;  // false: every operator is its own group (`eager`).
  int cores = 0;        // Cores per group; 0: all.
  // What contractions work in where their pattern lists it and it suits them; the others take the
  // first listed layout that does. Nothing: the layout with the cheapest groups, reorders included,
  // among LayoutChoices.
  std::optional<Layout> layout = std::nullopt;
  // Whether the layout may change along the graph where that is cheaper (plan/layout_runs.h): for
  // plans that are going to run; a search compares graphs well enough without. Without, channels
  // are padded wherever channels_last8 would, which is one cover less to form.
  bool mixed_layouts = false;
};

// The layouts that contractions of `graph` may prefer on this device, in the order in which its
// patterns list them; plain only when there is no other, channels_last8 only where it pads channels
// of one. One at least.
std::vector<Layout> LayoutChoices(const Graph& graph, const DeviceSpec& spec);

// Groups with layouts and reorders, without schedule or places: the cheapest cover of the graph by
// the spec's patterns by the sum of GroupTimes (exact on trees of single-reader edges). Several
// operators stay in one group unless others are cheaper by more than its time's noise: alone, what
// a further group writes and reads again lies in the caches. kUnimplemented names the operator that
// no pattern of the device takes.
//
// A group is a path: each operator reads the one before by an edge that nothing else reads. Layouts
// are chosen first (options.layout, plan/node_layouts.h), so a group's price does not depend on its
// neighbours. A movement operator is a view where plan/views.h lets it, and then costs nothing; one
// reorder per edge and layout serves all its readers. Groups stand in topological order.
// Deterministic.
StatusOr<std::vector<Group>> FormGroups(const Graph& graph, const DeviceSpec& spec,
                                        const Policy& policy, GroupTimes& times,
                                        const GroupingOptions& options = {});

// The same with what each group takes: times[i] is of groups[i], 0 for views. Asking here is free;
// asking again costs cutting the group out. kernel is filled in from measured times.
struct TimedGroups {
  std::vector<Group> groups;
  std::vector<GroupTime> times;
};
StatusOr<TimedGroups> FormTimedGroups(const Graph& graph, const DeviceSpec& spec,
                                      const Policy& policy, GroupTimes& times,
                                      const GroupingOptions& options = {});

// The paper's estimate (AutoGraph, AAAI 2023): sum over all groups + alpha x the sum over the
// groups of the critical path.
double MixedEstimateNs(const Graph& graph, const std::vector<Group>& groups,
                       const std::vector<double>& group_ns, double alpha);

// groups[i] must end before groups[j] begins, for each i in the returned[j], ascending; views are
// looked through: they are in no list, and a view's own list is that of its readers.
std::vector<std::vector<int>> GroupDependencies(const Graph& graph,
                                                const std::vector<Group>& groups);

}  // namespace ag
