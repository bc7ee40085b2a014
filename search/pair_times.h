// The overlap of groups on the device, as far as this search knows. A few pairs of groups that a
// plan would run beside each other are timed together, and one number is fitted to all of them
// (plan/schedule/contention_model.h). One thread at a time.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "plan/schedule/contention_model.h"
#include "plan/schedule/planner.h"
#include "search/search.h"

namespace ag {

class PairTimes {
 public:
  // Requests at most `pairs_max` pairs, and none on a device that does not deal blocks out. `spec`
  // and `measurer` must outlive it.
  PairTimes(const DeviceSpec& spec, Measurer& measurer, int pairs_max);

  // Times the pairs that overlap longest in the simulation of `plan` and were not requested before,
  // within the limit. Returns true when overlap() changed. A failed pair affects only itself; see
  // failure(). REQUIRES: all groups of the plan are measured.
  bool Learn(const Graph& graph, const TimedPlan& plan);
  bool CanLearn() const { return asked_ < pairs_max_; }

  double overlap() const { return overlap_; }
  int measured() const { return static_cast<int>(times_.size()); }
  int failed() const { return asked_ - measured(); }
  const Status& failure() const { return failure_; }  // The failure of the first failed pair.

 private:
  struct Wanted {
    PairProblem problem;
    PairTime time;  // The Measurer gives together_ns.
  };
  std::vector<Wanted> Choose(const Graph& graph, const TimedPlan& timed);

  const DeviceSpec& spec_;
  Measurer& measurer_;
  const int pairs_max_;
  std::set<std::string> known_;  // The bytes of requested pairs.
  std::vector<PairTime> times_;
  int asked_ = 0;
  double overlap_ = 1;
  Status failure_;
};

}  // namespace ag
