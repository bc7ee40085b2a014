#include "search/search_run.h"

#include <algorithm>

namespace ag {

namespace {

Nanos After(Nanos begin, Nanos duration) {
  return duration < Nanos::max() - begin ? begin + duration : Nanos::max();
}

}  // namespace

SearchRun::SearchRun(const SearchRequest& request, Clock& clock)
    : request_(request),
      clock_(clock),
      start_(clock.Now()),
      search_end_(After(start_, request.options.limits.time_max)),
      comparison_end_(After(search_end_, request.options.limits.comparison_max)) {}

Nanos SearchRun::PointAt(double share) const {
  if (search_end_ == Nanos::max()) return search_end_;
  const auto part = share * static_cast<double>((search_end_ - start_).count());
  return start_ + Nanos(static_cast<int64_t>(part));
}

bool SearchRun::Cancelled() {
  if (!cancelled_ && request_.cancelled) cancelled_ = request_.cancelled();
  return cancelled_;
}

bool SearchRun::TimeUp() {
  if (!time_up_) time_up_ = clock_.Now() >= end_;
  return time_up_;
}

Nanos SearchRun::TimeLeft() {
  if (TimeUp()) return Nanos(0);
  return request_.options.limits.time_max - (clock_.Now() - start_);
}

StopReason SearchRun::OverReason() {
  if (Cancelled()) return StopReason::kCancelled;
  return TimeUp() ? StopReason::kTime : StopReason::kNone;
}

void SearchRun::Report(std::string_view stage) {
  if (request_.on_progress) {
    request_.on_progress({.stage = std::string(stage),
                          .round = counts.rounds,
                          .graphs = counts.graphs + counts.cell_graphs,
                          .candidates = counts.candidates,
                          .best_speedup = best_speedup_});
  }
  if (at_step) at_step();
}

void SearchRun::WarnOfRule(const Rule& rule, const Status& status) {
  if (status.code() == StatusCode::kInternal) {
    Warn(fmt::format("rule {}: {}", rule.name, Message(status)));
  }
}

void SearchRun::AddToHistory() {
  log.Add(SearchPoint{.seconds = std::chrono::duration<double>(Now() - start_).count(),
                      .graphs = counts.graphs + counts.cell_graphs,
                      .candidates = counts.candidates,
                      .best_speedup = best_speedup_});
}

void SearchRun::Warn(std::string warning) {
  if (std::ranges::find(warnings_, warning) == warnings_.end()) {
    warnings_.push_back(std::move(warning));
  }
}

}  // namespace ag
