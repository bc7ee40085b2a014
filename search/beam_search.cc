#include "search/beam_search.h"

#include <algorithm>

#include "search/backtracking.h"
#include "search/scored_children.h"

namespace ag {

BeamSearch::BeamSearch(const SearchSetting& setting, RewriteTrail& trail)
    : setting_(setting),
      trail_(trail),
      graphs_(setting.rules),
      levels_(kRewritesMax + 1),
      best_(setting.request.options.limits.candidates_max),
      least_(setting) {}

std::vector<RankedGraph> BeamSearch::Run(const std::vector<RankedGraph>& roots,
                                         const absl::flat_hash_set<StructureHash>& skip,
                                         int graphs_max) {
  skip_ = &skip;
  end_ = setting_.run.counts.graphs + graphs_max;
  least_.Begin();
  for (const RankedGraph& root : roots) {
    const StructureHash hash = HashOfStructure(root.graph);
    if (!seen_.insert(hash).second) continue;
    least_.Add(root.estimate_ns);
    Expand(graphs_.AddRoot(root.graph), {.estimate_ns = root.estimate_ns, .step = root.step});
  }
  while (MayExpand() && Pass()) continue;
  stop_ = least_.OrStale(limit_);
  return best_.Take(graphs_.clean_up_rules());
}

StopReason BeamSearch::LimitReached() const {
  const StopReason reason = setting_.run.OverReason();
  if (reason != StopReason::kNone) return reason;
  const int total_max = setting_.request.options.limits.graphs_total_max;
  const int graphs = setting_.run.counts.graphs;
  const bool reached = graphs >= end_ || (total_max > 0 && graphs >= total_max);
  return reached ? StopReason::kGraphs : StopReason::kNone;
}

// Limits are looked at where a new graph is to be scored, and nowhere else: then the counts repeat
// a search that time stopped.
bool BeamSearch::MayScore() {
  if (limit_ == StopReason::kNone) limit_ = LimitReached();
  return limit_ == StopReason::kNone;
}

bool BeamSearch::MayExpand() {
  if (setting_.run.Cancelled()) limit_ = StopReason::kCancelled;
  return least_.OrStale(limit_) == StopReason::kNone;
}

// Returns whether a graph was left that no pass expanded before.
bool BeamSearch::Pass() {
  setting_.run.Report("rewriting");
  bool has_found = false;
  for (int rewrites = 1; rewrites <= kRewritesMax; ++rewrites) {
    Level& level = levels_[static_cast<size_t>(rewrites)];
    while (SettleFront(&level)) continue;
    for (size_t i = 0; i < kWidth && !level.empty(); ++i) {
      const Level::node_type front = level.extract(level.begin());
      const auto [ns, hash] = front.key();
      const Entry& entry = front.mapped();
      has_found = true;
      const bool begins_round = rewrites == 1;
      const bool has_gain = entry.parent.estimate_ns < kNoTimeNs;
      const double gain_ns = has_gain ? entry.parent.estimate_ns - ns : 0;
      const int step = trail_.Add(entry.parent.step, {entry.rewrite, begins_round, gain_ns});
      least_.Add(ns);
      const bool is_wanted = ns < setting_.request.options.beta * least_.ns();
      if (is_wanted && !skip_->contains(hash)) {
        best_.Offer(graphs_.Get(entry.graph), {ns, hash}, step);
      }
      if (rewrites == kRewritesMax) continue;
      Expand(entry.graph, {.estimate_ns = ns, .step = step, .rewrites = rewrites});
    }
  }
  return has_found;
}

// Scores those of the level's best graphs again that are not settled, and measures their groups.
// Returns whether there were any. No graph comes more than kCoverTurnsMax times.
bool BeamSearch::SettleFront(Level* level) {
  std::vector<Level::node_type> front;
  size_t place = 0;
  const int64_t version = setting_.times.version();
  for (auto it = level->begin(); it != level->end() && place < kWidth; ++place) {
    const auto next = std::next(it);
    Entry& entry = it->second;
    entry.is_settled = entry.is_settled || entry.measured_at == version;  // It keeps its score.
    if (!entry.is_settled) front.push_back(level->extract(it));
    it = next;
  }
  std::vector<Graph> graphs;
  for (const Level::node_type& node : front) graphs.push_back(graphs_.Get(node.mapped().graph));
  const std::vector<StatusOr<ScoredGraph>> scores = ScoreGraphs(graphs, setting_);
  for (size_t i = 0; i < front.size(); ++i) {
    Level::node_type& node = front[i];
    Entry& entry = node.mapped();
    const StatusOr<ScoredGraph>& scored = scores[i];
    if (EstimateOf(scored) == kNoTimeNs) continue;
    entry.is_settled =
        IsMeasured(scored->groups) || entry.turns == kCoverTurnsMax || setting_.times.Exhausted();
    ++entry.turns;
    node.key().first = scored->estimate_ns;
    if (!entry.is_settled) WantUnmeasured(graphs[i], *scored, setting_);
    level->insert(std::move(node));
  }
  setting_.times.MeasureWanted();
  return !front.empty();
}

// Scores the graphs that one more rewrite makes and that were not seen before.
void BeamSearch::Expand(DerivedGraphs::Id graph, const Place& place) {
  if (!MayExpand()) return;
  const std::shared_ptr<const MatchSet> matches = graphs_.Matches(graph);
  const ChildrenRequest request = {
      setting_, graphs_.Children(graph, Backtracking::NodesMax(setting_.request)), *matches};
  VisitChildren(
      request, AllSites(*matches), &seen_, [this] { return !MayScore(); },
      [&](int, ScoredChild child) {
        ++setting_.run.counts.graphs;
        const GraphKey key{EstimateOf(child.scored), child.child.hash};
        if (key.first == kNoTimeNs) return;
        Entry entry{.parent = place, .rewrite = child.rewrite};
        if (IsMeasured(child.scored->groups)) entry.measured_at = setting_.times.version();
        entry.graph = graphs_.Add(graph, std::move(child.rewrite), std::move(child.child));
        levels_[static_cast<size_t>(place.rewrites) + 1].emplace(key, std::move(entry));
      });
}

}  // namespace ag
