// The shared state of one FindPlan call: counts, when to stop and why, progress. One thread at a
// time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "search/search.h"

namespace ag {

struct SearchCounts {
  int rounds = 0;
  int expansions = 0;
  int graphs = 0;
  // Before the rounds: scored inside cells, the cells themselves among them, and tries to take what
  // was found for a form at one of its copies. A replay repeats them.
  int cell_graphs = 0;
  int cell_takes = 0;
  int instance_sizes = 0;
  int candidates = 0;
  int pruned = 0;  // Of the scored graphs: dropped, as they were not below beta x the best.
  int plans_timed = 0;
  int refined = 0;
};

class SearchRun {
 public:
  // Both must outlive it. The time limits count from here.
  SearchRun(const SearchRequest& request, Clock& clock);

  Clock& clock() { return clock_; }
  Nanos Now() { return clock_.Now(); }
  Nanos start() const { return start_; }
  Nanos search_end() const { return search_end_; }          // start() + time_max.
  Nanos comparison_end() const { return comparison_end_; }  // search_end() + comparison_max.
  // Returns the point after this fraction of the time from start to search_end.
  Nanos PointAt(double share) const;

  // Makes TimeUp() true at `end`, not at search_end(). A round that is cut by it is the last, and
  // its plans are still timed.
  void EndAt(Nanos end) { end_ = end; }

  // Both stay true once they are true, so that all later code sees the same end.
  bool Cancelled();
  bool TimeUp();
  // Returns the time left until search_end(); 0 once TimeUp().
  Nanos TimeLeft();
  bool Over() { return Cancelled() || TimeUp(); }
  // Whether one of them was true when it was asked last.
  bool WasOver() const { return cancelled_ || time_up_; }
  StopReason OverReason();  // kCancelled, kTime or kNone.

  // Reports the stage with the counts so far to on_progress, then calls at_step.
  void Report(std::string_view stage);
  // Adds a point to the log, when a set of plans has been timed.
  void AddToHistory();
  void SetBestSpeedup(double speedup) { best_speedup_ = speedup; }

  // Adds a warning, unless it is there already.
  void Warn(std::string warning);
  // Adds one if `status`, of a child that the rule did not make, is a bug of the rule: kInternal.
  void WarnOfRule(const Rule& rule, const Status& status);
  const std::vector<std::string>& warnings() const { return warnings_; }

  SearchCounts counts;
  SearchLog log;
  std::function<void()> at_step;  // May be null.
  // The part of a round's graphs, and of those without a gain, that is scored: less where what is
  // to be found in cells was known.
  double round_share = 1;
  // A factor of the graphs without a gain that end a round: above 1 after rounds that found
  // nothing.
  double patience = 1;

 private:
  const SearchRequest& request_;
  Clock& clock_;
  const Nanos start_, search_end_, comparison_end_;
  Nanos end_ = search_end_;
  bool cancelled_ = false;
  bool time_up_ = false;
  double best_speedup_ = 1;
  std::vector<std::string> warnings_;
};

}  // namespace ag
