#include "search/search_log.h"

#include <utility>

namespace ag {

void SearchLog::Add(MeasuredCandidate candidate) {
  if (measured.size() >= kMeasuredMax && !candidate.is_final) return;
  measured.push_back(std::move(candidate));
}

void SearchLog::Add(const SearchPoint& point) {
  if (history.size() == kHistoryMax) {
    for (size_t i = 0; 2 * i < history.size(); ++i) history[i] = history[2 * i];
    history.resize((history.size() + 1) / 2);
  }
  history.push_back(point);
}

void SearchLog::Add(const SearchedRegion& region) {
  if (regions.size() < kRegionsMax) regions.push_back(region);
}

void SearchLog::Add(JoinedRegions join) {
  if (joins.size() < kRegionsMax) joins.push_back(std::move(join));
}

}  // namespace ag
