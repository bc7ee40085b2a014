#include "client/cli/search_text.h"

#include <absl/strings/ascii.h>

#include <algorithm>
#include <vector>

#include "client/cli/job_text.h"

namespace ag {
namespace {

namespace v1 = autograph::v1;

constexpr size_t kPlansShownMax = 10;

std::string SearchRow(const char* name, const std::string& value) {
  return TableRow(name, value) + "\n";
}

// Why the search ended (docs/search.md, "Why it stopped").
const char* ReasonText(v1::Result::StopReason reason) {
  switch (reason) {
    case v1::Result::EXHAUSTED:
      return "nothing was left to try";
    case v1::Result::ROUNDS:
      return "the limit of rounds";
    case v1::Result::EXPANSIONS:
      return "the limit of graphs expanded in a round";
    case v1::Result::GRAPHS:
      return "the limit of graphs scored in a round";
    case v1::Result::STALE:
      return "nothing better came for long: in the last round by estimate, or in three rounds";
    case v1::Result::GROUPS:
      return "nothing was left to try, but some groups were only estimated: their limit";
    case v1::Result::TIME:
      return "the time for it was over";
    case v1::Result::UNAVAILABLE:
      return "plans could not be measured any more, the warnings say why";
    case v1::Result::CANCELLED:
      return "it was cancelled";
    case v1::Result::GOES_ON:
      return "it goes on, this is its best so far";
    default:
      return "not known";
  }
}

std::string CountsRow(const v1::Result& r) {
  return SearchRow(
      "search", fmt::format("{} (stopped: {}: {}); {} rounds, {} graphs, {} measured whole, "
                            "{} groups failed",
                            v1::Result::SearchState_Name(r.search()),
                            absl::AsciiStrToLower(v1::Result::StopReason_Name(r.stop_reason())),
                            ReasonText(r.stop_reason()), r.rounds(), r.graphs() + r.cell_graphs(),
                            r.candidates(), r.groups_failed()));
}

std::string OriginText(const v1::MeasuredCandidate& candidate) {
  std::string text = "the input";
  if (candidate.stage() == v1::MeasuredCandidate::CELLS) text = "cells";
  if (candidate.stage() == v1::MeasuredCandidate::ROUND) {
    text = fmt::format("round {}", candidate.round());
  }
  return candidate.in_final() ? text + ", final" : text;
}

// The fastest first; of equals the earlier one. Those that failed are left out.
std::vector<const v1::MeasuredCandidate*> Fastest(const v1::SearchLog& log) {
  std::vector<const v1::MeasuredCandidate*> fastest;
  for (const v1::MeasuredCandidate& candidate : log.measured()) {
    if (candidate.has_timing()) fastest.push_back(&candidate);
  }
  std::ranges::stable_sort(fastest, std::greater<>(), [](const v1::MeasuredCandidate* candidate) {
    return candidate->timing().speedup();
  });
  if (fastest.size() > kPlansShownMax) fastest.resize(kPlansShownMax);
  return fastest;
}

std::string CandidateRow(const v1::MeasuredCandidate& candidate, double unit) {
  const v1::PlanTiming& timing = candidate.timing();
  const v1::PlanEstimates& estimates = candidate.estimates();
  const std::string speedup = fmt::format("{:.3f}x ({:.3f} to {:.3f})", timing.speedup(),
                                          timing.speedup_low(), timing.speedup_high());
  return SearchRow(
      "", fmt::format("{:<24} {:>9.3f}  {:>9.3f} {:>9.3f} {:>9.3f} {:>9.3f} {:>6} {:>7} "
                      "{:>8}  {}",
                      speedup, timing.latency().median_ns() / unit, estimates.makespan_ns() / unit,
                      estimates.sum_ns() / unit, estimates.critical_path_ns() / unit,
                      estimates.mixed_ns() / unit, estimates.groups(), candidate.streams(),
                      candidate.rewrites(), OriginText(candidate)));
}

std::string CandidateRows(const v1::Result& r) {
  const std::vector<const v1::MeasuredCandidate*> fastest = Fastest(r.search_log());
  if (fastest.empty()) return "";
  constexpr double kMillisecond = 1e6, kMicrosecond = 1e3;
  const bool is_short = fastest[0]->timing().latency().median_ns() < 0.1 * kMillisecond;
  std::string text = SearchRow(
      "timed whole",
      fmt::format("{} timings of whole plans; the fastest, in {}, and what was predicted:",
                  r.search_log().measured_size(), is_short ? "us" : "ms"));
  text += SearchRow("", fmt::format("{:<24} {:>9}  {:>9} {:>9} {:>9} {:>9} {:>6} {:>7} {:>8}  {}",
                                    "speedup", "median", "makespan", "sum", "path", "mixed",
                                    "groups", "streams", "rewrites", "from"));
  for (const v1::MeasuredCandidate* candidate : fastest) {
    text += CandidateRow(*candidate, is_short ? kMicrosecond : kMillisecond);
  }
  return text;
}

}  // namespace

std::string SearchRows(const v1::Result& r) { return CountsRow(r) + CandidateRows(r); }

}  // namespace ag
