// What groups take, as far as this search knows: measurements where the Measurer gave one,
// estimates elsewhere. An estimate is the roofline times the median ratio measurement / roofline of
// like groups, so that it stands beside measurements without favour: a bare roofline is what no
// kernel reaches and would make every unmeasured group look better than every measured one.
//
// A group whose measurement failed is never asked for again. Time() answers kFailedGroupNs for it,
// which makes FormGroups take another cover where there is one; Find tells that it failed, and a
// graph that still needs it is no candidate. No result ever holds that number.
//
// All but MeasureWanted are thread-safe; MeasureWanted is called by one thread at a time.
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

// Eleven days: above every sum of real groups, and a double still resolves 1/8 ns beside it.
inline constexpr double kFailedGroupNs = 1e15;

// What one call of MeasureGroups carries at most (DESIGN section 8: a GroupBatch).
inline constexpr int kGroupBatchMax = 256;

class GroupTimesCache : public GroupTimes {
 public:
  struct Options {
    int groups_max = 0;  // Distinct groups asked of the Measurer; then Exhausted().
    std::function<bool()>
        stop;  // May be null. Asked before each batch; true ends measuring for good.
  };
  // Borrows `spec` and `measurer`; they outlive it.
  GroupTimesCache(const DeviceSpec& spec, Measurer& measurer, Options options);

  GroupTime Time(const GroupProblem& problem) override;
  // Measured and failed times are remembered for good, estimates until the next measurement.
  std::optional<GroupTime> Recall(const LocalKey& key) override;
  void Remember(const LocalKey& key, const GroupTime& time) override;

  enum class State { kUnknown, kMeasured, kFailed };
  struct Known {
    State state = State::kUnknown;
    GroupTime time;  // As Time() answers.
    Status failure;  // Why the measurement failed; OK otherwise.
  };
  Known Find(const GroupProblem& problem) const;

  // From now on the group runs by `kernel` wherever it stands: one that was a little slower alone
  // and is faster inside a plan. Its time stays what it was. Nothing happens when it is not
  // measured.
  void Prefer(const GroupProblem& problem, std::string kernel);

  // Marks the group for the next MeasureWanted. Nothing happens when it is known, failed or wanted.
  void Want(const GroupProblem& problem);

  // Asks the Measurer for the wanted groups, at most `count_max`, in the order of wanting, in
  // batches. Wanted groups that it did not come to are forgotten: the limit, `stop` or an answer
  // kCancelled (which says nothing of the group) ended it.
  void MeasureWanted(int count_max = std::numeric_limits<int>::max());

  // A stage of the search begins, in which at most so many distinct groups more are asked for. An
  // answer kCancelled ended the stage before, not this one.
  void BeginStage(int groups_max = std::numeric_limits<int>::max());

  bool Exhausted() const;  // No further group will be measured, in this stage at least.
  int asked() const;       // Distinct groups, so far.
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
  // By the problem's bytes; never iterated. kUnknown: wanted and not answered yet.
  absl::flat_hash_map<std::string, Known> known_ AG_GUARDED_BY(mutex_);
  std::vector<Wanted> wanted_ AG_GUARDED_BY(mutex_);
  absl::flat_hash_map<LocalKey, Remembered> remembered_ AG_GUARDED_BY(mutex_);
  int64_t version_ AG_GUARDED_BY(mutex_) = 0;  // Grows with each answer of the Measurer.
  // Sorted ratios measurement / roofline: of one pattern in given layouts, of a pattern, of all.
  std::map<std::string, std::vector<double>> ratios_ AG_GUARDED_BY(mutex_);
  int LeftToAsk() const AG_REQUIRES(mutex_);

  int asked_ AG_GUARDED_BY(mutex_) = 0;
  int64_t stage_max_ AG_GUARDED_BY(mutex_) = std::numeric_limits<int64_t>::max();  // Of asked_.
  int measured_ AG_GUARDED_BY(mutex_) = 0;
  int failed_ AG_GUARDED_BY(mutex_) = 0;
  bool stopped_ AG_GUARDED_BY(mutex_) = false;
};

// Forwards to a cache and wants every group that was answered by an estimate: what a first look at
// the input uses, so that its cover is chosen among measurements.
class WantingTimes : public GroupTimes {
 public:
  explicit WantingTimes(GroupTimesCache& cache) : cache_(cache) {}
  GroupTime Time(const GroupProblem& problem) override;

 private:
  GroupTimesCache& cache_;
};

}  // namespace ag
