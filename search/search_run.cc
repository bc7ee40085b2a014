#include "search/search_run.h"

#include <algorithm>

namespace ag {

std::string_view StopReasonName(StopReason reason) {
  switch (reason) {
    case StopReason::kNone:
      return "exhausted";
    case StopReason::kRounds:
      return "rounds";
    case StopReason::kExpansions:
      return "expansions";
    case StopReason::kGraphs:
      return "graphs";
    case StopReason::kGroups:
      return "groups";
    case StopReason::kTime:
      return "time";
    case StopReason::kUnavailable:
      return "unavailable";
    case StopReason::kCancelled:
      return "cancelled";
  }
  AG_CHECK(false);
}

SearchRun::SearchRun(const SearchRequest& request, Clock& clock)
    : request_(request), clock_(clock), start_(clock.Now()) {}

bool SearchRun::Cancelled() {
  if (!cancelled_ && request_.cancelled) cancelled_ = request_.cancelled();
  return cancelled_;
}

bool SearchRun::TimeUp() {
  if (!time_up_) time_up_ = clock_.Now() - start_ >= request_.options.limits.time_max;
  return time_up_;
}

StopReason SearchRun::OverReason() {
  if (Cancelled()) return StopReason::kCancelled;
  return TimeUp() ? StopReason::kTime : StopReason::kNone;
}

void SearchRun::Report(std::string_view stage) {
  if (!request_.on_progress) return;
  request_.on_progress({.stage = std::string(stage),
                        .round = counts.rounds,
                        .graphs = counts.graphs,
                        .candidates = counts.candidates,
                        .best_speedup = best_speedup_});
}

void SearchRun::Warn(std::string warning) {
  if (std::ranges::find(warnings_, warning) == warnings_.end()) {
    warnings_.push_back(std::move(warning));
  }
}

}  // namespace ag
