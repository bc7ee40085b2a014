// The times of groups that this search knows: measurements, or estimates for groups without one. An
// estimate is the roofline times the median ratio measurement / roofline of similar groups, so it
// is comparable with measurements. No kernel reaches a bare roofline; it would make every
// unmeasured group look better than every measured one.
//
// A group whose measurement failed is never requested again. Time() returns kFailedGroupNs for it,
// so FormGroups takes another cover if there is one. Find reports the failure; a graph that still
// needs the group is no candidate. kFailedGroupNs appears in no result.
//
// Thread-safe, except MeasureWanted, which one thread at a time may call.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/mutex.h"
#include "search/search.h"

namespace ag {

// Eleven days: more than every sum of real groups, and a double still resolves 1/8 ns next to it.
inline constexpr double kFailedGroupNs = 1e15;

// The most groups in one call of MeasureGroups (docs/design.md, Measuring: a GroupBatch).
inline constexpr int kGroupBatchMax = 256;

class GroupTimesCache : public GroupTimes {
 public:
  struct Options {
    int groups_max = 0;  // Most distinct groups requested; then Exhausted().
    // May be null. Called before each batch; true ends measuring for the current stage.
    std::function<bool()> stop;
  };
  // `spec` and `measurer` must outlive it.
  GroupTimesCache(const DeviceSpec& spec, Measurer& measurer, Options options);

  GroupTime Time(const GroupProblem& problem) override;
  // Keep measured and failed times for good, estimates until the next measurement.
  std::optional<GroupTime> Recall(const LocalKey& key) override;
  void Remember(const LocalKey& key, const GroupTime& time) override;

  enum class State { kUnknown, kMeasured, kFailed };
  struct Known {
    State state = State::kUnknown;
    GroupTime time;  // As from Time().
    Status failure;  // Why the measurement failed, or OK.
  };
  Known Find(const GroupProblem& problem) const;

  // Makes the group run by `kernel` from now on: a kernel that was a little slower alone and is
  // faster inside a plan. The group's time stays. Does nothing for a group that is not measured.
  void Prefer(const GroupProblem& problem, std::string kernel);

  // Marks the group for the next MeasureWanted. Does nothing for a group that is known, failed or
  // marked.
  void Want(const GroupProblem& problem);

  // Requests up to `count_max` of the marked groups from the Measurer, in the order of marking, in
  // batches, and unmarks all others. A limit, `stop` or an answer kCancelled (which says nothing
  // about the group) ends it early.
  void MeasureWanted(int count_max = std::numeric_limits<int>::max());

  // Begins a stage of the search, which may request `groups_max` more distinct groups. An answer
  // kCancelled ends only its own stage.
  void BeginStage(int groups_max = std::numeric_limits<int>::max());

  bool Exhausted() const;  // True: this stage measures no more groups.
  int asked() const;       // Distinct groups requested so far.
  int measured() const;
  int failed() const;

 private:
  struct Remembered {
    GroupTime time;
    int64_t version = 0;
  };
  struct Wanted {
    std::string bytes;
    GroupProblem problem;
  };
  std::vector<Wanted> TakeBatch(int count_max);
  void Record(const Wanted& wanted, const StatusOr<Measurement>& measurement);
  double EstimateNs(const GroupProblem& problem) const AG_REQUIRES(mutex_);
  GroupTime TimeOf(const Known* known, const GroupProblem& problem) const AG_REQUIRES(mutex_);

  const DeviceSpec& spec_;
  Measurer& measurer_;
  const Options options_;
  mutable Mutex mutex_;
  // By the problem's bytes; never iterated. kUnknown: marked, without an answer yet.
  absl::flat_hash_map<std::string, Known> known_ AG_GUARDED_BY(mutex_);
  std::vector<Wanted> wanted_ AG_GUARDED_BY(mutex_);
  absl::flat_hash_map<LocalKey, Remembered> remembered_ AG_GUARDED_BY(mutex_);
  int64_t version_ AG_GUARDED_BY(mutex_) = 0;  // Increases with each answer of the Measurer.
  // Sorted ratios measurement / roofline: by pattern and layouts, by pattern, and of all.
  std::map<std::string, std::vector<double>> ratios_ AG_GUARDED_BY(mutex_);
  int LeftToAsk() const AG_REQUIRES(mutex_);

  int asked_ AG_GUARDED_BY(mutex_) = 0;
  // Upper limit of asked_.
  int64_t stage_max_ AG_GUARDED_BY(mutex_) = std::numeric_limits<int64_t>::max();
  int measured_ AG_GUARDED_BY(mutex_) = 0;
  int failed_ AG_GUARDED_BY(mutex_) = 0;
  bool stopped_ AG_GUARDED_BY(mutex_) = false;
};

// Forwards to a cache and marks every group whose time is an estimate. For the first look at the
// input, so that its cover is chosen among measurements.
class WantingTimes : public GroupTimes {
 public:
  explicit WantingTimes(GroupTimesCache& cache) : cache_(cache) {}
  GroupTime Time(const GroupProblem& problem) override;

 private:
  GroupTimesCache& cache_;
};

}  // namespace ag
