// A Measurer for tests: deterministic times, failures on request, and a record of all calls. One
// thread at a time.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "search/search.h"

namespace ag {

// Returns a small device for tests: plain layout, one launch per MatMul [Relu], per element-wise
// operator, and per operator of any other kind; 4 cores, up to `streams_max` streams.
DeviceSpec TestSpec(int streams_max = 1);

// Parse a graph or rules. REQUIRES: the text is correct.
Graph TestGraph(std::string_view text);
RuleSet TestRules(std::string_view text);

class FakeMeasurer : public Measurer {
 public:
  explicit FakeMeasurer(DeviceSpec spec) : spec_(std::move(spec)) {}
  // Returns one for a bench: groups take exactly their bare roofline, and no calls are kept.
  static FakeMeasurer OnRoofline(const DeviceSpec& spec);

  std::vector<StatusOr<Measurement>> MeasureGroups(
      const std::vector<GroupProblem>& problems) override;
  std::vector<StatusOr<Measurement>> MeasurePairs(const std::vector<PairProblem>& pairs) override;
  StatusOr<std::vector<PlanTiming>> MeasurePlans(const std::vector<Candidate>& candidates,
                                                 Effort effort) override;
  StatusOr<std::vector<KernelChoice>> RefinePlan(const Candidate& candidate) override;

  // Returns a group's time before replacements: its roofline times 1.0 to 1.5, by a hash of its
  // bytes.
  double HashedNs(const GroupProblem& problem) const;
  // Returns the makespan of the plan with the times of its groups.
  double SimulatedNs(const Candidate& candidate) const;
  const DeviceSpec& spec() const { return spec_; }

  // Replacements and failures. Null: HashedNs, SimulatedNs, no failure.
  std::function<double(const GroupProblem&)> group_ns;
  std::function<double(const Candidate&)> plan_ns;
  std::function<Status(const GroupProblem&)> group_failure;
  std::function<Status(const Candidate&)> plan_failure;
  std::function<Status(int call)> call_failure;  // For MeasurePlans as a whole; calls count from 0.
  std::function<int(const GroupProblem&)> active_cores;  // Null: as estimated.
  std::function<StatusOr<std::vector<KernelChoice>>(const Candidate&)> refine;  // Null: none.
  double overlap = 1;     // The true overlap of plans and pairs (plan/schedule/contention_model.h).
  Status pair_failure;    // For every pair.
  bool is_exact = false;  // Groups' times are simulated: without noise (GroupTime::noise_ns).
  double noise = 0;       // Each plan's time is multiplied by 1 +- noise.
  Random random{1};       // Draws the noise.

  // Half the width of a speedup's interval, as a fraction of the speedup.
  static constexpr double kIntervalShare = 0.01;

  // The arguments of all calls, in order. A bench's long search keeps none.
  bool keeps_calls = true;
  std::vector<std::vector<GroupProblem>> group_calls;
  std::vector<std::vector<PairProblem>> pair_calls;
  std::vector<std::vector<Candidate>> plan_calls;
  std::vector<Effort> plan_efforts;
  std::vector<Candidate> refine_calls;

 private:
  double GroupNs(const GroupProblem& problem) const;
  int ActiveCores(const GroupProblem& problem) const;
  double RunNs(const Graph& graph, const Plan& plan) const;

  DeviceSpec spec_;
};

}  // namespace ag
