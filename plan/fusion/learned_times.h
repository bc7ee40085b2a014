// The times of groups that were learned so far: measurements, or estimates for groups without one.
// An estimate is the roofline times the median ratio measurement / roofline of similar groups, so
// it is comparable with measurements. No kernel reaches a bare roofline; it would make every
// unmeasured group look better than every measured one.
//
// A group whose measurement failed is never requested again. Its time is kFailed, with the reason,
// so FormGroups takes another cover if there is one; a graph that still needs it is no candidate.
//
// Thread-safe, except MeasureWanted, and Time with `at_once`: one thread at a time may call these.
#pragma once

#include <array>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/mutex.h"
#include "plan/fusion/group_time.h"

namespace ag {

// The most groups in one call of a GroupMeasurer (docs/design.md, Measuring: a GroupBatch).
inline constexpr int kGroupBatchMax = 256;

// Measures groups and returns one result per problem, in order.
using GroupMeasurer =
    std::function<std::vector<StatusOr<Measurement>>(const std::vector<GroupProblem>&)>;

struct LearningOptions {
  int groups_max = std::numeric_limits<int>::max();  // Most groups requested; then Exhausted().
  // May be null. Called before each batch; true ends measuring for the current stage.
  std::function<bool()> stop = nullptr;
  bool at_once = false;  // Time measures an unknown group instead of estimating it.
};

class LearnedTimes : public GroupTimes {
 public:
  // `spec` must outlive it.
  LearnedTimes(const DeviceSpec& spec, GroupMeasurer measure, LearningOptions options = {});
  // Begins with what `known` knows, and learns by itself: neither sees what the other learns, until
  // TakeFrom. Measures by `measure`; options.groups_max counts from here. REQUIRES: no group of
  // `known` is marked.
  LearnedTimes(const LearnedTimes& known, GroupMeasurer measure, LearningOptions options);

  // Takes what a copy of this learned since it was made, and counts its requests; what both learned
  // is kept as it is here. A stage of the copy that was stopped is stopped here.
  void TakeFrom(const LearnedTimes& copy);

  GroupTime Time(const GroupProblem& problem) override;
  // Remembers by the key the time of a measured or failed group, and what an estimate is made of.
  GroupTime TimeOf(const LocalKey& key, MakeProblem make) override;
  BriefTime BriefTimeOf(const LocalKey& key, MakeProblem make) override;

  const GroupMeasurer& measurer() const { return measure_; }

  // Returns the group's measurement; nothing when it has none or failed.
  std::optional<Measurement> MeasurementOf(const GroupProblem& problem) const;

  // Makes the group run by `kernel` from now on: a kernel that was a little slower alone and is
  // faster inside a plan. The group's time stays. Does nothing for a group that is not measured.
  void Prefer(const GroupProblem& problem, std::string kernel);

  // Marks the group for the next MeasureWanted. Returns false, and does nothing, for a group that
  // is measured, failed or marked.
  bool Want(const GroupProblem& problem);

  // Requests up to `count_max` of the marked groups, in the order of marking, in batches, and
  // unmarks all others. A limit, `stop` or an answer kCancelled (which says nothing about the
  // group) ends it early.
  void MeasureWanted(int count_max = std::numeric_limits<int>::max());

  // Begins a stage, which may request `groups_max` more distinct groups. An answer kCancelled ends
  // only its own stage.
  void BeginStage(int groups_max = std::numeric_limits<int>::max());

  // Increases with each answer. As long as it stays, so do the times of all groups.
  int64_t version() const;

  bool Exhausted() const;  // True: this stage measures no more groups.
  bool Stopped() const;    // True: options.stop or an answer kCancelled ended this stage.
  int LeftToAsk() const;   // Groups that this stage may still request, if nothing stops it.
  // Distinct groups requested so far. A group that copies requested counts once for each.
  int asked() const;
  int measured() const;
  int failed() const;

 private:
  struct Known {
    GroupTime time;  // kEstimated: marked, without an answer yet.
    std::optional<Measurement> measurement;
  };
  // What the time of a group is found by.
  struct Basis {
    std::string bytes;                      // The problem's.
    GroupEstimate roofline;                 // EstimateGroup.
    std::array<std::string, 3> ratio_keys;  // In ratios_, the most special first.
  };
  struct Stored {
    GroupTime time;
    int64_t version = 0;                      // When the time was estimated.
    std::shared_ptr<const Basis> basis = {};  // Of an estimate.
  };
  struct Wanted {
    std::string bytes;
    GroupProblem problem;
  };
  struct Answer {
    Wanted group;
    StatusOr<Measurement> measurement;
  };
  std::vector<Wanted> TakeBatch(int count_max);
  void Record(Wanted wanted, const StatusOr<Measurement>& measurement);
  void Learn(const Wanted& wanted, const StatusOr<Measurement>& measurement) AG_REQUIRES(mutex_);
  Basis BasisOf(const GroupProblem& problem) const;
  GroupTime TimeBy(const Basis& basis) const AG_REQUIRES(mutex_);
  const GroupTime* Recall(const LocalKey& key) AG_REQUIRES(mutex_);
  int Left() const AG_REQUIRES(mutex_);

  const DeviceSpec& spec_;
  const GroupMeasurer measure_;
  const LearningOptions options_;
  const bool is_copy_ = false;
  mutable Mutex mutex_;
  // By the problem's bytes; never iterated.
  absl::flat_hash_map<std::string, Known> known_ AG_GUARDED_BY(mutex_);
  std::vector<Wanted> wanted_ AG_GUARDED_BY(mutex_);
  std::vector<Answer> answers_ AG_GUARDED_BY(mutex_);  // A copy's own, in their order.
  absl::flat_hash_map<LocalKey, Stored> stored_ AG_GUARDED_BY(mutex_);
  int64_t version_ AG_GUARDED_BY(mutex_) = 0;  // Increases with each answer.
  // Sorted ratios measurement / roofline: by pattern and layouts, by pattern, and of all.
  std::map<std::string, std::vector<double>> ratios_ AG_GUARDED_BY(mutex_);
  int asked_ AG_GUARDED_BY(mutex_) = 0;
  int asked_before_ AG_GUARDED_BY(mutex_) = 0;  // Of asked_: when the copy was made.
  // Upper limit of asked_.
  int64_t stage_max_ AG_GUARDED_BY(mutex_) = std::numeric_limits<int64_t>::max();
  int measured_ AG_GUARDED_BY(mutex_) = 0;
  int failed_ AG_GUARDED_BY(mutex_) = 0;
  bool stopped_ AG_GUARDED_BY(mutex_) = false;
};

// Forwards to `times` and marks every group whose time is an estimate. For the first look at the
// input, so that its cover is chosen among measurements.
class WantingTimes : public GroupTimes {
 public:
  explicit WantingTimes(LearnedTimes& times) : times_(times) {}
  GroupTime Time(const GroupProblem& problem) override {
    times_.Want(problem);
    return times_.Time(problem);
  }

 private:
  LearnedTimes& times_;
};

}  // namespace ag
