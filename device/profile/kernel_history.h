// What measured groups say about the kernels of a group that is not measured yet: how each kernel
// did at the nearest shapes of the same kind of group. One thread at a time.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plan/fusion/group_problem.h"
#include "plan/measurement.h"

namespace ag {

// Groups are of one kind when they have the same operators with the same attributes (windows and
// strides, not sizes), layouts, cores and precision. Their distance is that of the logarithms of
// all their sizes, so it is 1 where one size is twice as large.
class KernelHistory {
 public:
  // Takes the kernels' times of a measured group.
  void Add(const GroupProblem& problem, const Measurement& measurement);

  // Returns the time over that of the fastest kernel that is expected of each kernel, by a
  // regression (Nadaraya and Watson 1964: the mean of the logarithms, weighted by distance) over at
  // most kNearestMax groups; nothing for a kernel of which no near group says anything.
  std::vector<std::optional<double>> Expect(const GroupProblem& problem,
                                            const std::vector<std::string>& kernels) const;

  // Returns the kernels that are worth timing: the one expected to be fastest first, those without
  // an expectation in their order behind it. Leaves out a kernel that took more than kLoses times
  // as long as the fastest in each of at least kWitnesses near groups, but never the first of
  // `kernels`, which the device guesses to be the best.
  std::vector<std::string> Promising(const GroupProblem& problem,
                                     const std::vector<std::string>& kernels) const;

  static constexpr size_t kNearestMax = 4;
  static constexpr double kFar = 1.5;  // Groups beyond this distance say nothing.
  static constexpr double kLoses = 1.35;
  static constexpr int kWitnesses = 2;  // One may have been measured in a slow moment.

 private:
  struct Known {
    std::vector<double> sizes;                // Logarithms to base 2.
    std::map<std::string, double> over_best;  // Logarithms, by kernel.
  };
  // Known groups with their distances, the nearest first.
  using Near = std::vector<std::pair<double, const Known*>>;
  Near NearestTo(const GroupProblem& problem) const;
  static bool Loses(const Near& near, const std::string& kernel);

  std::map<std::string, std::vector<Known>> known_;  // By kind.
};

}  // namespace ag
