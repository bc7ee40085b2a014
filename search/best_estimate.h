// The least estimate that one run of a strategy met, and how many graphs it has scored since.
#pragma once

#include <algorithm>
#include <cmath>

#include "search/scored_graph.h"

namespace ag {

// Of graphs of fewer nodes, so many more may be scored without a gain: they are scored faster.
inline constexpr int kStaleNodes = 1000;

class BestEstimate {
 public:
  // `setting` must outlive it.
  explicit BestEstimate(const SearchSetting& setting)
      : run_(setting.run), stale_max_(StaleMax(setting)) {}

  // Counts graphs from here.
  void Begin() { graphs_ = run_.counts.graphs; }
  void Add(double ns) {
    if (IsGain(ns, ns_)) Begin();
    ns_ = std::min(ns_, ns);
  }
  double ns() const { return ns_; }
  // Returns `reason` where there is one, and kStale after limits.stale_graphs_max graphs, or their
  // share in this round, without a gain.
  StopReason OrStale(StopReason reason) const {
    const bool is_stale = stale_max_ > 0 && run_.counts.graphs - graphs_ >= stale_max_;
    return reason == StopReason::kNone && is_stale ? StopReason::kStale : reason;
  }

 private:
  static double StaleMax(const SearchSetting& setting) {
    const SearchRequest& request = setting.request;
    const double nodes = std::clamp(request.input.size(), 1, kStaleNodes);
    const double graphs = request.options.limits.stale_graphs_max * (kStaleNodes / nodes);
    return std::ceil(setting.run.round_share * setting.run.patience * graphs);
  }

  const SearchRun& run_;
  const double stale_max_;
  double ns_ = kNoTimeNs;
  int graphs_ = 0;
};

}  // namespace ag
