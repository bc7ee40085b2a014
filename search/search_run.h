// What the parts of one FindPlan call share: counts reached, when to stop and why, progress.
// Not thread-safe: a search is one thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "search/search.h"

namespace ag {

// Why a part of the search ended. kNone: it came to its natural end.
enum class StopReason {
  kNone,
  kRounds,
  kExpansions,
  kGraphs,
  kGroups,
  kTime,
  kUnavailable,
  kCancelled
};
std::string_view StopReasonName(StopReason reason);  // "exhausted" for kNone, else as SearchResult.

struct SearchCounts {
  int rounds = 0;
  int expansions = 0;
  int graphs = 0;
  int candidates = 0;
  int plans_timed = 0;
  int refined = 0;
};

class SearchRun {
 public:
  // Borrows both; they outlive it. The time limits count from here.
  SearchRun(const SearchRequest& request, Clock& clock);

  Nanos Now() { return clock_.Now(); }
  Nanos start() const { return start_; }
  Nanos search_end() const { return search_end_; }  // By time_max,
  Nanos finals_end() const { return finals_end_; }  // and finals_max after it.
  // The point at this part of the time from the start to the search's end.
  Nanos PointAt(double share) const;

  // Time is up at `end` instead of search_end(). What is cut then ends the search: its last round
  // still has plans to time.
  void EndAt(Nanos end) { end_ = end; }

  // Both stay true once they were true, so that everything after sees one cut.
  bool Cancelled();
  bool TimeUp();
  // What is left of the time limit; 0 once it is up.
  Nanos TimeLeft();
  bool Over() { return Cancelled() || TimeUp(); }
  StopReason OverReason();  // kCancelled, kTime or kNone.

  // Says where the search stands, with the counts reached.
  void Report(std::string_view stage);
  void SetBestSpeedup(double speedup) { best_speedup_ = speedup; }

  // Adds a warning once.
  void Warn(std::string warning);
  const std::vector<std::string>& warnings() const { return warnings_; }

  SearchCounts counts;

 private:
  const SearchRequest& request_;
  Clock& clock_;
  const Nanos start_, search_end_, finals_end_;
  Nanos end_ = search_end_;
  bool cancelled_ = false;
  bool time_up_ = false;
  double best_speedup_ = 1;
  std::vector<std::string> warnings_;
};

}  // namespace ag
