// The search's Measurer: first the cache, then the workers. What a worker measured is in the cache
// before the worker may forget it. One job's own; not thread-safe.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/measuring_lock.h"
#include "search/search.h"
#include "server/store/group_cache.h"
#include "server/workers/dispatcher.h"

namespace ag {

class PoolMeasurer : public Measurer {
 public:
  struct Options {
    std::string device;
    Environment environment;
    Policy policy;
    uint64_t seed = 1;
    std::string inputs = {};  // Digest of the set of inputs that plans run on; empty: made ones.
    bool skip_group_cache = false;    // Measure again what the cache knows (once per job).
    std::function<bool()> cancelled;  // May be null.
    // May be null. Ends timings for a verdict, which a cancellation does not: without its final
    // comparison the best so far would be lost.
    std::function<bool()> stopping;
    SearchTurn* turn = nullptr;  // Left while measurements are awaited. May be null.
    std::function<void(const std::string&)> on_wait;  // May be null. As ItemRequest::on_wait.
    double group_seconds_max = 60;  // Without progress for so long the executor is killed.
    double plan_seconds_max = 120;
    double check_seconds_max = 600;
  };
  PoolMeasurer(WorkRunner& runner, GroupCache& cache, Clock& clock, Options options);

  std::vector<StatusOr<Measurement>> MeasureGroups(
      const std::vector<GroupProblem>& problems) override;
  std::vector<StatusOr<Measurement>> MeasurePairs(const std::vector<PairProblem>& pairs) override;
  StatusOr<std::vector<PlanTiming>> MeasurePlans(const std::vector<Candidate>& candidates,
                                                 Effort effort) override;
  // Workers are told; one that is not done with its entry by then is stopped a little later.
  void EndBy(Nanos until) override { until_ = until; }
  static constexpr Nanos kGroupGrace{2'000'000'000};
  static constexpr Nanos kPlansGrace{3'000'000'000};  // The input and a rival, ready and run once.
  // A remembered time is scaled by the canary's time now over that of then; beyond this the group
  // is measured again. Until this job has measured something the canary of now is not known, and
  // remembered times are taken as they are.
  static constexpr double kCanaryMovedMax = 0.1;
  // Asks a worker where kernels were close when their groups were timed; measures no group anew.
  StatusOr<std::vector<KernelChoice>> RefinePlan(const Candidate& candidate) override;

  // The largest differences of `candidate` from `reference` over the inputs: of these outputs, in
  // this order. Adds what they were compared on to `compared`, which may be null.
  StatusOr<std::vector<OutputError>> Check(v1::Check check, const std::vector<std::string>& outputs,
                                           std::vector<ComparedInputs>* compared = nullptr);

  // Returns the values where `candidate` differs from `reference`, at most `bytes_max` of them;
  // nothing: no inputs show a difference. `outputs` as Check's. kUnimplemented: the worker is of an
  // older version.
  StatusOr<std::optional<v1::ShownValues>> Show(v1::Check check,
                                                const std::vector<std::string>& outputs,
                                                int64_t bytes_max);

  // Times model files in fresh processes on the worker; checked. A model that needs less than
  // kFilesLeast has its times even when the end is near or past. kDeadlineExceeded: the files
  // cannot be timed by then; else the worker's.
  static constexpr Nanos kFilesLeast{5'000'000'000};
  StatusOr<FileTimes> TimeFiles(v1::FileSet set);
  // Differences of the second file's outputs from the first's, both run in ONNX Runtime there.
  StatusOr<std::vector<OutputError>> CompareFiles(v1::FileSet set,
                                                  const std::vector<std::string>& outputs);

  // What was measured for this job, or is remembered, of the group; nothing when it is unknown or
  // failed.
  std::optional<Measurement> Remembered(const GroupProblem& problem);

  void set_cancelled(std::function<bool()> cancelled) { options_.cancelled = std::move(cancelled); }
  int hits() const { return hits_; }
  int misses() const { return misses_; }
  int failed() const { return failed_; }

  // What of this job was measured while others used the machine's processors.
  struct ForeignLoadSeen {
    int groups = 0, groups_disturbed = 0;  // Disturbed: most of a group's samples.
    int blocks = 0, blocks_disturbed = 0;  // Of plans and of files.
    bool busy() const { return groups_disturbed * 5 > groups || blocks_disturbed * 5 > blocks; }
    std::string Warning() const;  // Empty unless busy().
  };
  const ForeignLoadSeen& foreign_load() const { return foreign_load_; }

 private:
  struct Asked {  // A group or a pair.
    std::string bytes;
    std::string summary;
  };
  std::vector<StatusOr<Measurement>> Measure(const std::vector<Asked>& all);
  // What was measured for this job; else what is remembered, which may be unchecked.
  std::optional<StatusOr<Measurement>> Fresh(const std::string& bytes) const;
  std::optional<CacheRow> Recall(const std::string& bytes, const Digest& key);
  struct Recalled {  // A row of the cache with a time.
    Asked asked;
    Digest key;
    Measurement measurement;
  };
  // Asks a worker whether the device has the kernels of rows that came from elsewhere; adds the
  // rows of which it says so to `recalled` and returns the others, which are misses.
  std::vector<Asked> CheckKernels(const std::vector<Recalled>& rows,
                                  std::vector<Recalled>* recalled);
  // Takes the row's time as it is now, by the canary of what this job has measured. Returns false
  // when the canary has moved too far for that.
  bool TakeRecalled(const Recalled& row, double canary_ns);
  void MeasureMissing(const std::vector<Asked>& missing);
  void MeasureBatch(const std::vector<Asked>& batch);
  void Keep(const Asked& asked, const Delivery& delivery);
  struct Limit {
    Nanos until = Nanos::max();
    Nanos grace{0};
    std::vector<std::string> outputs = {};  // As ItemRequest::outputs.
  };
  StatusOr<EntryResult> RunFiles(v1::FileSet set, const Limit& limit);
  Status RunItem(v1::WorkItem work, const std::function<void(const Delivery&)>& on_result,
                 const std::function<bool()>& stop, const Limit& limit);

  WorkRunner& runner_;
  GroupCache& cache_;
  Clock& clock_;
  Options options_;
  // By problem: measured for this job, or taken from the cache as times of now.
  std::map<std::string, StatusOr<Measurement>> fresh_;
  std::vector<double> canaries_;  // Of what was measured for this job, in nanoseconds.
  int hits_ = 0;
  int misses_ = 0;
  int failed_ = 0;
  Nanos until_ = Nanos::max();
  ForeignLoadSeen foreign_load_;
};

}  // namespace ag
