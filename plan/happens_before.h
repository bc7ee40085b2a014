// The order of launches that holds in every execution that streams and waits allow. Immutable once
// made; safe to share between threads.
#pragma once

#include <vector>

#include "base/index_set.h"
#include "plan/plan.h"

namespace ag {

class HappensBefore {
 public:
  // Computes the order. kInvalidArgument: a launch or a wait names a group out of range, a group is
  // launched twice, a wait is for a group without a launch, or streams wait for each other in a
  // cycle.
  static StatusOr<HappensBefore> Make(size_t groups, const std::vector<Stream>& streams);

  // Returns the groups that have ended when `group` begins. Empty: the group is not launched.
  const IndexSet& Before(int group) const { return before_[group]; }
  bool IsBefore(int a, int b) const { return before_[b].Has(a); }
  int StreamOf(int group) const { return stream_of_[group]; }  // -1: not launched.
  bool in_one_stream() const { return in_one_stream_; }        // All that are launched.
  // Returns the launched groups in an order in which each comes after all that are before it.
  const std::vector<int>& order() const { return order_; }
  int PositionOf(int group) const { return position_of_[group]; }  // In order(); -1: not launched.

 private:
  Status Index(const std::vector<Stream>& streams);
  Status Sort(const std::vector<Stream>& streams);

  std::vector<IndexSet> before_;
  std::vector<int> stream_of_;
  std::vector<int> order_;
  std::vector<int> position_of_;
  bool in_one_stream_ = true;
};

}  // namespace ag
