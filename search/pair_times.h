// What the device makes of groups that run beside each other, as far as this search knows: pairs of
// groups that a plan would run so are timed together, a few of them per search, and one number is
// fitted to all (plan/sharing.h). One thread.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "plan/schedule.h"
#include "search/search.h"

namespace ag {

class PairTimes {
 public:
  // Asks for `pairs_max` pairs at most; for none where the device does not deal blocks out. Borrows
  // `spec` and `measurer`; they outlive it.
  PairTimes(const DeviceSpec& spec, Measurer& measurer, int pairs_max);

  // Times the pairs that ran longest beside each other in the simulation of `plan` and were not
  // asked for before, as far as the limit goes. group_ns and busy_cores are those of its groups,
  // all of them measured. True: overlap() is another than before. A pair that fails, costs only
  // itself; see failure().
  bool Learn(const Graph& graph, const Plan& plan, const std::vector<double>& group_ns,
             const std::vector<int>& busy_cores);
  bool CanLearn() const { return asked_ < pairs_max_; }

  double overlap() const { return overlap_; }
  Sharing SharingOf(const std::vector<int>& busy_cores) const { return {busy_cores, overlap_}; }
  int measured() const { return static_cast<int>(times_.size()); }
  int failed() const { return asked_ - measured(); }
  const Status& failure() const { return failure_; }  // Of the first pair that failed.

 private:
  struct Wanted {
    PairProblem problem;
    PairTime time;  // together_ns comes from the Measurer.
  };
  std::vector<Wanted> Choose(const Graph& graph, const Plan& plan,
                             const std::vector<double>& group_ns,
                             const std::vector<int>& busy_cores);

  const DeviceSpec& spec_;
  Measurer& measurer_;
  const int pairs_max_;
  std::set<std::string> known_;  // What was asked for, by its bytes.
  std::vector<PairTime> times_;
  int asked_ = 0;
  double overlap_ = 1;
  Status failure_;
};

}  // namespace ag
