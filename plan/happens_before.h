// The order of launches that holds in every execution that streams and waits allow. Immutable once
// made; safe to share between threads.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace ag {

// A set of group numbers.
class GroupSet {
 public:
  explicit GroupSet(size_t size = 0) : words_((size + 63) / 64) {}
  void Add(int group) { words_[group / 64] |= uint64_t{1} << group % 64; }
  bool Has(int group) const { return (words_[group / 64] >> group % 64 & 1) != 0; }
  void Unite(const GroupSet& other);
  void Intersect(const GroupSet& other);
  int Count() const;

 private:
  std::vector<uint64_t> words_;
};

class HappensBefore {
 public:
  // Computes the order. kInvalidArgument: a launch or a wait names a group out of range, a group is
  // launched twice, a wait is for a group without a launch, or streams wait for each other in a
  // cycle.
  static StatusOr<HappensBefore> Make(size_t groups, const std::vector<Stream>& streams);

  // Returns the groups that have ended when `group` begins. Empty: the group is not launched.
  const GroupSet& Before(int group) const { return before_[group]; }
  bool IsBefore(int a, int b) const { return before_[b].Has(a); }
  int StreamOf(int group) const { return stream_of_[group]; }  // -1: not launched.
  bool in_one_stream() const { return in_one_stream_; }        // All that are launched.
  // Returns the launched groups in an order in which each comes after all that are before it.
  const std::vector<int>& order() const { return order_; }
  int PositionOf(int group) const { return position_of_[group]; }  // In order(); -1: not launched.

 private:
  Status Index(const std::vector<Stream>& streams);
  Status Sort(const std::vector<Stream>& streams);

  std::vector<GroupSet> before_;
  std::vector<int> stream_of_;
  std::vector<int> order_;
  std::vector<int> position_of_;
  bool in_one_stream_ = true;
};

}  // namespace ag
