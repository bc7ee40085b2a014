// Searches that run side by side, of which none runs while groups are measured: measurements beside
// other work of the same host are wrong. Where one of them asks for groups, the others stop at
// their next Pause; then one thread measures what is asked for, each group once, and all go on.
// Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/mutex.h"
#include "plan/fusion/learned_times.h"

namespace ag {

class MeasuringTogether {
 public:
  // `measure` is called by one thread at a time, while no search runs.
  explicit MeasuringTogether(GroupMeasurer measure) : measure_(std::move(measure)) {}

  // Begin and end a search. Between them, one calls Pause often. Enter and Pause wait while others
  // measure, or run alone.
  void Enter();
  void Pause();
  void Leave();

  // Calls `run` while no search runs. REQUIRES: between Enter and Leave.
  void RunAlone(const std::function<void()>& run);

  // Returns one result per problem, in order. A group that was answered before has that answer; so
  // what a search learns does not depend on the others. Requests that come together are ordered by
  // `place`, a number that no two searches share. REQUIRES: between Enter and Leave.
  std::vector<StatusOr<Measurement>> Measure(int place, const std::vector<GroupProblem>& problems);

 private:
  using Answers = std::vector<StatusOr<Measurement>>;
  // A problem and its bytes.
  using Named = std::pair<std::string, const GroupProblem*>;
  struct Request {
    std::vector<Named> groups;
    Answers answers;
  };

  bool IsAsked() const AG_REQUIRES(mutex_) { return !waiting_.empty() || alone_ > 0; }
  void Begin() AG_REQUIRES(mutex_);
  void End() AG_REQUIRES(mutex_);
  bool WaitForAnswers(int place, Answers* answers);
  std::vector<Named> NewGroups();
  Answers MeasureInBatches(const std::vector<Named>& groups) const;
  void Answer(const std::vector<Named>& groups, const Answers& answers);

  const GroupMeasurer measure_;
  Mutex mutex_;
  CondVar changed_;
  int searching_ AG_GUARDED_BY(mutex_) = 0;                // Searches that run.
  bool is_taken_ AG_GUARDED_BY(mutex_) = false;            // A thread measures, or runs alone.
  int alone_ AG_GUARDED_BY(mutex_) = 0;                    // Calls of RunAlone.
  std::map<int, Request> waiting_ AG_GUARDED_BY(mutex_);   // By place.
  std::map<int, Answers> answered_ AG_GUARDED_BY(mutex_);  // Not taken yet.
  // By bytes; without kCancelled, which says nothing about a group.
  absl::flat_hash_map<std::string, StatusOr<Measurement>> known_ AG_GUARDED_BY(mutex_);
};

}  // namespace ag
