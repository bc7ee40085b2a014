#include "search/backtracking.h"

#include <algorithm>

namespace ag {

Backtracking::Backtracking(const SearchSetting& setting, RewriteTrail& trail)
    : setting_(setting),
      limits_(setting.request.options.limits),
      trail_(trail),
      graphs_(setting.rules) {}

std::vector<RankedGraph> Backtracking::Run(const RankedGraph& root,
                                           const absl::flat_hash_set<StructureHash>& skip) {
  skip_ = &skip;
  begin_ = setting_.run.counts;
  best_ns_ = root.estimate_ns;
  const StructureHash hash = HashOfStructure(root.graph);
  seen_.insert(hash);
  queue_.emplace(Key{root.estimate_ns, hash},
                 Entry{.graph = graphs_.AddRoot(root.graph), .step = root.step});
  while (true) {
    SettleFront();
    const bool is_done = queue_.empty() || queue_.begin()->first.first >= BoundNs();
    const StopReason reason = is_done ? setting_.run.OverReason() : LimitReached();
    if (reason != StopReason::kNone) stop_ = reason;
    if (is_done || reason != StopReason::kNone) break;
    const auto front = queue_.extract(queue_.begin());
    ++setting_.run.counts.expansions;
    setting_.run.Report("rewriting");
    Expand(front.key(), front.mapped());
  }
  return TakeBest();
}

namespace {

bool Reached(int count, int begin, int max, int total_max) {
  return count - begin >= max || (total_max > 0 && count >= total_max);
}

}  // namespace

// What may also end an expansion that has begun.
StopReason Backtracking::GraphLimitReached() {
  const StopReason reason = setting_.run.OverReason();
  if (reason != StopReason::kNone) return reason;
  const bool reached = Reached(setting_.run.counts.graphs, begin_.graphs, limits_.graphs_max,
                               limits_.graphs_total_max);
  return reached ? StopReason::kGraphs : StopReason::kNone;
}

StopReason Backtracking::LimitReached() {
  const StopReason reason = GraphLimitReached();
  if (reason != StopReason::kNone) return reason;
  const bool reached = Reached(setting_.run.counts.expansions, begin_.expansions,
                               limits_.expansions_max, limits_.expansions_total_max);
  return reached ? StopReason::kExpansions : StopReason::kNone;
}

void Backtracking::Expand(const Key& key, const Entry& entry) {
  const std::shared_ptr<const MatchSet> matches = graphs_.Matches(entry.graph);
  ChildGraphs children =
      graphs_.Children(entry.graph, kGrowthMax * setting_.request.input.size() + kGrowthSlack);
  for (const Site& site : matches->sites()) {
    if (GraphLimitReached() != StopReason::kNone) return;
    Rewrite rewrite = matches->At(site);
    StatusOr<ChildGraph> child = MakeChild(rewrite, &children);
    if (child.ok()) {
      AddChild(key, entry, std::move(rewrite), *std::move(child));
    } else if (child.status().code() == StatusCode::kInternal) {
      setting_.run.Warn(fmt::format("rule {}: {}", rewrite.rule->name, Message(child.status())));
    }
  }
}

// The cleaned-up graph after `rewrite`; kAlreadyExists when it was seen before: mostly that is
// known before it is made, so that commuting rewrites cost a hash in all their orders but the
// first.
StatusOr<ChildGraph> Backtracking::MakeChild(const Rewrite& rewrite, ChildGraphs* children) {
  const auto seen = [] { return Err(StatusCode::kAlreadyExists, "graph: seen before"); };
  AG_LET(const StructureHash hash, children->Try(rewrite));
  if (!seen_.insert(hash).second) return seen();
  AG_LET(ChildGraph child, children->Make());
  if (child.hash != hash && !seen_.insert(child.hash).second) return seen();
  return child;
}

void Backtracking::AddChild(const Key& parent_key, const Entry& parent, Rewrite rewrite,
                            ChildGraph child) {
  ++setting_.run.counts.graphs;
  const StatusOr<ScoredGraph> scored = ScoreGraph(child.graph, setting_);
  if (!scored.ok() || !scored->failure.ok() || scored->estimate_ns >= BoundNs()) return;
  Entry entry{.parent = parent.step, .parent_ns = parent_key.first, .rule = rewrite.rule};
  const Graph graph = child.graph;
  const Key key{scored->estimate_ns, child.hash};
  entry.graph = graphs_.Add(parent.graph, std::move(rewrite), std::move(child));
  if (scored->unmeasured.empty()) {
    Settle(graph, key, entry);
  } else {
    queue_.emplace(key, entry);
  }
}

// Entries come and go from the front as their estimates move, so it is looked at until all are
// settled. When no more may be measured, what rests on estimates is settled after all that rests on
// measurements, so that the bound it must keep does not depend on when measuring ended.
void Backtracking::SettleFront() {
  for (auto front = TakeUnsettledFront(); !front.empty(); front = TakeUnsettledFront()) {
    const bool is_exhausted = setting_.times.Exhausted();
    const int settled_before = settled_;
    std::vector<std::pair<Key, Entry>> estimated;
    for (auto& [key, entry] : front) {
      const Graph graph = graphs_.Get(entry.graph);
      const StatusOr<ScoredGraph> scored = ScoreGraph(graph, setting_);
      if (!scored.ok() || !scored->failure.ok() || scored->estimate_ns >= BoundNs()) continue;
      const Key now{scored->estimate_ns, key.second};
      if (scored->unmeasured.empty() || entry.turns == kCoverTurnsMax) {
        Settle(graph, now, entry);
        continue;
      }
      if (is_exhausted) {
        estimated.emplace_back(now, entry);
        continue;
      }
      for (const GroupProblem& problem : scored->unmeasured) setting_.times.Want(problem);
      ++entry.turns;
      queue_.emplace(now, entry);
    }
    SettleEstimated(estimated, /*wait=*/settled_ != settled_before);
    setting_.run.Report("measuring groups");
    setting_.times.MeasureWanted();
  }
}

void Backtracking::SettleEstimated(const std::vector<std::pair<Key, Entry>>& estimated, bool wait) {
  for (const auto& [key, entry] : estimated) {
    if (wait) {
      queue_.emplace(key, entry);
    } else if (key.first < BoundNs()) {
      stop_ = StopReason::kGroups;
      Settle(graphs_.Get(entry.graph), key, entry);
    }
  }
}

std::vector<std::pair<Backtracking::Key, Backtracking::Entry>> Backtracking::TakeUnsettledFront() {
  std::vector<std::pair<Key, Entry>> front;
  size_t place = 0;
  for (auto it = queue_.begin(); it != queue_.end() && place < kLookAhead; ++place) {
    if (it->first.first >= BoundNs()) break;
    const auto next = std::next(it);
    if (it->second.step < 0) front.emplace_back(it->first, queue_.extract(it).mapped());
    it = next;
  }
  return front;
}

// Puts a graph whose estimate is final into the queue and among the best.
void Backtracking::Settle(const Graph& graph, const Key& key, Entry entry) {
  // A parent that needs a failed group has no estimate to gain on.
  const bool has_gain = entry.parent_ns < kFailedGroupNs;
  entry.step = trail_.Add(entry.parent, entry.rule, has_gain ? entry.parent_ns - key.first : 0);
  best_ns_ = std::min(best_ns_, key.first);
  ++settled_;
  Offer(graph, key, entry.step);
  queue_.emplace(key, entry);
}

void Backtracking::Offer(const Graph& graph, const Key& key, int step) {
  if (skip_->contains(key.second)) return;
  best_.emplace(key, RankedGraph{graph, key.first, step});
  if (best_.size() > static_cast<size_t>(std::max(limits_.candidates_max, 0))) {
    best_.erase(std::prev(best_.end()));
  }
}

// Inside the search a graph's commutative operands stand as its parent had them; outside there is
// one order.
std::vector<RankedGraph> Backtracking::TakeBest() {
  std::vector<RankedGraph> best;
  for (auto& [key, ranked] : best_) {
    StatusOr<Graph> clean = CleanUp(ranked.graph, setting_.rules);
    AG_CHECK(clean.ok());  // It went well on this graph's way here.
    ranked.graph = *std::move(clean);
    best.push_back(std::move(ranked));
  }
  return best;
}

}  // namespace ag
