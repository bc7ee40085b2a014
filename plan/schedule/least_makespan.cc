#include "plan/schedule/least_makespan.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace ag {
namespace {

// The part of a graph from the end of a group that all others are before or after, or from the
// begin, to the end of the next such group, or to the end.
class PartBound {
 public:
  // `entry`: the group before the part; -1: none. Its end is time 0.
  PartBound(const ScheduleProblem& problem, const std::vector<double>& remaining_ns, int entry,
            std::vector<int> groups, double event_ns)
      : problem_(problem),
        remaining_ns_(remaining_ns),
        groups_(std::move(groups)),
        event_ns_(event_ns),
        end_(problem.groups.size(), 0.0),
        followed_(problem.groups.size()) {
    // The rest of the graph begins when the last group of the part ends.
    const int last = groups_.back();
    after_ns_ = remaining_ns_[last] - problem_.ns[last];
    std::vector<bool> counts(problem.groups.size());
    if (entry >= 0) counts[entry] = true;
    for (const int g : groups_) counts[g] = true;
    for (const int g : groups_) {
      std::vector<int>& before = before_.emplace_back(problem.before[g]);
      std::erase_if(before, [&](int b) { return !counts[b]; });
    }
  }

  double Run(int64_t steps_max) {
    best_ns_ = kNever;
    steps_left_ = steps_max;
    Place(0, 0);
    if (steps_left_ >= 0) return best_ns_;
    double longest = 0;
    for (const int g : groups_) longest = std::max(longest, remaining_ns_[g] - after_ns_);
    return longest;
  }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  // Places groups_[i] and all later ones. `end`: the latest end so far.
  void Place(size_t i, double end) {
    if (i == groups_.size()) {
      best_ns_ = std::min(best_ns_, end);
      return;
    }
    if (--steps_left_ < 0) return;
    // Only a choice of the predecessor that ends last lets the group begin earlier.
    int last = -1;
    double begin_after_last = 0, begin = 0;
    for (const int b : before_[i]) {
      if (last < 0 || end_[b] > end_[last]) last = b;
      begin = std::max(begin, end_[b] + event_ns_);
    }
    if (last >= 0 && !followed_[last]) {
      begin_after_last = end_[last];
      for (const int b : before_[i]) {
        if (b != last) begin_after_last = std::max(begin_after_last, end_[b] + event_ns_);
      }
      followed_[last] = true;
      PlaceAt(i, begin_after_last, end);
      followed_[last] = false;
    }
    PlaceAt(i, begin, end);
  }

  void PlaceAt(size_t i, double begin, double end) {
    const int g = groups_[i];
    if (begin + remaining_ns_[g] - after_ns_ >= best_ns_) return;
    end_[g] = begin + problem_.ns[g];
    Place(i + 1, std::max(end, end_[g]));
  }

  const ScheduleProblem& problem_;
  const std::vector<double>& remaining_ns_;
  const std::vector<int> groups_;  // In launch order.
  // The predecessors of each of groups_ in the part, and the group before it.
  std::vector<std::vector<int>> before_;
  const double event_ns_;
  double after_ns_ = 0;
  std::vector<double> end_;
  std::vector<bool> followed_;  // Whether a group comes directly after it.
  double best_ns_ = kNever;
  int64_t steps_left_ = 0;
};

}  // namespace

double LeastMakespanNs(const ScheduleProblem& problem, int64_t steps_max) {
  const std::vector<double> remaining_ns = RemainingNs(problem);
  double event_ns = problem.spec.event_ns;
  for (const int g : problem.order) event_ns = std::min(event_ns, problem.ns[g]);
  double total = 0;
  int entry = -1;
  std::vector<int> part;
  const auto close = [&] {
    if (part.empty()) return;
    total += PartBound(problem, remaining_ns, entry, part, event_ns).Run(steps_max);
    entry = part.back();
    part.clear();
  };
  for (const ScheduleBlock& block : BlocksOf(problem)) {
    part.insert(part.end(), block.groups.begin(), block.groups.end());
    if (block.is_cut) close();
  }
  close();
  return total;
}

}  // namespace ag
