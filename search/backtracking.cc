#include "search/backtracking.h"

#include <algorithm>

namespace ag {

Backtracking::Backtracking(const SearchSetting& setting, RewriteTrail& trail)
    : setting_(setting),
      limits_(setting.request.options.limits),
      trail_(trail),
      graphs_(setting.rules) {}

std::vector<RankedGraph> Backtracking::Run(const RankedGraph& root,
                                           const absl::flat_hash_set<Digest>& skip) {
  skip_ = &skip;
  begin_ = setting_.run.counts;
  best_ns_ = root.estimate_ns;
  seen_.insert(root.graph.digest());
  queue_.emplace(Key{root.estimate_ns, root.graph.digest()},
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
  return std::move(best_);
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
  const Graph graph = graphs_.Get(entry.graph);
  for (Rewrite& rewrite : FindRewrites(graph, setting_.rules)) {
    if (GraphLimitReached() != StopReason::kNone) return;
    StatusOr<Graph> child = MakeChild(graph, rewrite);
    if (child.ok()) {
      AddChild(key, entry, std::move(rewrite), *child);
    } else if (child.status().code() == StatusCode::kInternal) {
      setting_.run.Warn(fmt::format("rule {}: {}", rewrite.rule->name, Message(child.status())));
    }
  }
}

// Returns the cleaned-up graph after `rewrite`; kAlreadyExists when it was seen before.
StatusOr<Graph> Backtracking::MakeChild(const Graph& graph, const Rewrite& rewrite) {
  AG_LET(Graph raw, Apply(graph, rewrite));
  const int size_max = kGrowthMax * setting_.request.input.size() + kGrowthSlack;
  if (raw.size() > size_max) {
    return Err(StatusCode::kResourceExhausted, "graph: {} nodes, at most {}", raw.size(), size_max);
  }
  const auto is_new = [this](const Graph& g) { return seen_.insert(g.digest()).second; };
  const auto seen = [] { return Err(StatusCode::kAlreadyExists, "graph: seen before"); };
  if (!is_new(raw)) return seen();
  AG_LET(Graph clean, CleanUp(raw, setting_.rules));
  if (clean.digest() != raw.digest() && !is_new(clean)) return seen();
  return clean;
}

void Backtracking::AddChild(const Key& parent_key, const Entry& parent, Rewrite rewrite,
                            const Graph& graph) {
  ++setting_.run.counts.graphs;
  const StatusOr<ScoredGraph> scored = ScoreGraph(graph, setting_);
  if (!scored.ok() || !scored->failure.ok() || scored->estimate_ns >= BoundNs()) return;
  Entry entry{.parent = parent.step, .parent_ns = parent_key.first, .rule = rewrite.rule};
  entry.graph = graphs_.Add(parent.graph, std::move(rewrite), graph);
  if (scored->unmeasured.empty()) {
    Settle(graph, scored->estimate_ns, entry);
  } else {
    queue_.emplace(Key{scored->estimate_ns, graph.digest()}, entry);
  }
}

// Entries come and go from the front as their estimates move, so it is looked at until all are
// settled.
void Backtracking::SettleFront() {
  for (auto front = TakeUnsettledFront(); !front.empty(); front = TakeUnsettledFront()) {
    for (auto& [key, entry] : front) {
      const Graph graph = graphs_.Get(entry.graph);
      const StatusOr<ScoredGraph> scored = ScoreGraph(graph, setting_);
      if (!scored.ok() || !scored->failure.ok() || scored->estimate_ns >= BoundNs()) continue;
      const bool is_exhausted = setting_.times.Exhausted();
      if (scored->unmeasured.empty() || is_exhausted || entry.turns == kCoverTurnsMax) {
        if (!scored->unmeasured.empty() && is_exhausted) stop_ = StopReason::kGroups;
        Settle(graph, scored->estimate_ns, entry);
        continue;
      }
      for (const GroupProblem& problem : scored->unmeasured) setting_.times.Want(problem);
      ++entry.turns;
      queue_.emplace(Key{scored->estimate_ns, key.second}, entry);
    }
    setting_.run.Report("measuring groups");
    setting_.times.MeasureWanted();
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
void Backtracking::Settle(const Graph& graph, double estimate_ns, Entry entry) {
  // A parent that needs a failed group has no estimate to gain on.
  const bool has_gain = entry.parent_ns < kFailedGroupNs;
  entry.step = trail_.Add(entry.parent, entry.rule, has_gain ? entry.parent_ns - estimate_ns : 0);
  best_ns_ = std::min(best_ns_, estimate_ns);
  Offer({graph, estimate_ns, entry.step});
  queue_.emplace(Key{estimate_ns, graph.digest()}, entry);
}

void Backtracking::Offer(const RankedGraph& ranked) {
  if (skip_->contains(ranked.graph.digest())) return;
  const auto key = [](const RankedGraph& r) { return Key{r.estimate_ns, r.graph.digest()}; };
  best_.insert(std::ranges::upper_bound(best_, key(ranked), {}, key), ranked);
  if (best_.size() > static_cast<size_t>(std::max(limits_.candidates_max, 0))) best_.pop_back();
}

}  // namespace ag
