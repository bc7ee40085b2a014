#include "search/backtracking.h"

#include <algorithm>

namespace ag {
namespace {

// The number of graphs near the last gain that are scored before a gain elsewhere is taken.
constexpr int kPatience = 12;
// The most operators between a detour and a rewrite that may follow it.
constexpr int kNear = 2;

bool Reached(int count, int begin, int max, int total_max) {
  return count - begin >= max || (total_max > 0 && count >= total_max);
}

}  // namespace

Backtracking::Backtracking(const SearchSetting& setting, RewriteTrail& trail)
    : setting_(setting),
      limits_(setting.request.options.limits),
      trail_(trail),
      least_(setting),
      graphs_(setting.rules),
      best_(limits_.candidates_max) {}

// Always: seen_ has the structure of every graph met so far, so each is scored as a child once. An
// entry of queue_ with a step is settled. least_ is the least settled estimate; it only decreases,
// and so does the bound beta x best. An expanded graph keeps the rewrites that it may
// still follow in `later`.
// Each turn of the loop expands one graph of the queue or takes one rewrite of a `later`. It ends
// because rewrites may not grow a graph beyond the size limit, no structure comes twice, and the
// limits on graphs, expansions and time hold. A known graph costs one hash; a new one is made and
// scored.
std::vector<RankedGraph> Backtracking::Run(const RankedGraph& root,
                                           const absl::flat_hash_set<StructureHash>& skip,
                                           int graphs_max) {
  skip_ = &skip;
  graphs_max_ = graphs_max;
  begin_ = setting_.run.counts;
  graphs_at_gain_ = begin_.graphs;
  least_.Begin();
  least_.Add(root.estimate_ns);
  const StructureHash hash = HashOfStructure(root.graph);
  seen_.insert(hash);
  queue_.emplace(GraphKey{root.estimate_ns, hash},
                 Entry{.graph = graphs_.AddRoot(root.graph), .step = root.step});
  while (true) {
    SettleFront();
    const bool has_near = !queue_.empty() && queue_.begin()->first.first < BoundNs();
    const bool is_near = has_near && (GraphsWithoutGain() < kPatience || !HasGain());
    const bool is_done = !is_near && !HasLater();
    const StopReason reason =
        is_done ? setting_.run.OverReason() : least_.OrStale(GraphLimitReached());
    if (reason != StopReason::kNone) stop_ = reason;
    if (is_done || reason != StopReason::kNone) break;
    if (!is_near) {
      TakeLater();
      continue;
    }
    const auto front = queue_.extract(queue_.begin());
    std::optional<Expanded> node = NodeOf(front.key(), front.mapped());
    if (!node) continue;
    if (ExpansionLimitReached()) {
      stop_ = StopReason::kExpansions;
      break;
    }
    Visit(front.mapped(), *std::move(node));
  }
  return best_.Take(graphs_.clean_up_rules());
}

// Returns the limit that also ends an expansion that has begun. The limits on expansions and
// on graphs without a gain hold only where one would begin: a replay makes all graphs that were
// made before that.
StopReason Backtracking::GraphLimitReached() {
  const StopReason reason = setting_.run.OverReason();
  if (reason != StopReason::kNone) return reason;
  const bool reached =
      Reached(setting_.run.counts.graphs, begin_.graphs, graphs_max_, limits_.graphs_total_max);
  return reached ? StopReason::kGraphs : StopReason::kNone;
}

bool Backtracking::ExpansionLimitReached() const {
  return Reached(setting_.run.counts.expansions, begin_.expansions, limits_.expansions_max,
                 limits_.expansions_total_max);
}

bool Backtracking::HasLater() const {
  return best_node_ >= 0 && !expanded_[best_node_].later.empty();
}

bool Backtracking::HasGain() const {
  return HasLater() && expanded_[best_node_].later.back().first < expanded_[best_node_].estimate_ns;
}

// Makes the most promising child of the best graph, unless its graph was made another way. Its
// surroundings are searched before the next one.
void Backtracking::TakeLater() {
  const int parent = best_node_;
  const int site = expanded_[parent].later.back().second;
  expanded_[parent].later.pop_back();
  graphs_at_gain_ = setting_.run.counts.graphs;
  FollowAll(parent, {site});
}

// Whether to follow the rewrite from `parent`: not when it still exists after the gain that was
// taken from `parent`.
bool Backtracking::IsWanted(int parent, int64_t serial) const {
  const int best = expanded_[parent].best_child;
  return best < 0 || !std::ranges::binary_search(expanded_[best].kept, serial);
}

// Returns the node for a graph of the queue; nothing: the graph is not expanded.
std::optional<Backtracking::Expanded> Backtracking::NodeOf(const GraphKey& key,
                                                           const Entry& entry) {
  Expanded node{.graph = entry.graph, .step = entry.step, .estimate_ns = key.first};
  node.goal_ns = key.first;
  if (entry.parent >= 0) {
    Expanded& parent = expanded_[entry.parent];
    if (IsGain(key.first, parent.goal_ns)) {
      parent.goal_ns = key.first;
      parent.best_child = static_cast<int>(expanded_.size());
    } else if (parent.detour == limits_.detour_max || !IsWanted(entry.parent, entry.serial)) {
      return std::nullopt;
    } else {
      node.goal_ns = parent.goal_ns;
      node.detour = parent.detour + 1;
      node.old_serial = parent.old_serial;
      node.area = AreaOf(entry.graph, parent.area);
    }
  }
  return node;
}

void Backtracking::Visit(const Entry& entry, Expanded node) {
  ++setting_.run.counts.expansions;
  setting_.run.Report("rewriting");
  if (entry.parent >= 0) Matches(expanded_[entry.parent]);  // Those of `node` derive from these.
  if (best_node_ < 0 || IsGain(node.estimate_ns, expanded_[best_node_].estimate_ns)) {
    best_node_ = static_cast<int>(expanded_.size());
    graphs_at_gain_ = setting_.run.counts.graphs;
  }
  const int id = static_cast<int>(expanded_.size());
  expanded_.push_back(std::move(node));
  Expand(id);
  if (entry.parent >= 0 && expanded_[entry.parent].best_child == id) FollowOthers(entry.parent);
}

// Makes the children whose rewrites do not exist any more after the gain just taken from `parent`:
// they may lead further.
void Backtracking::FollowOthers(int parent) {
  std::vector<int> others;
  for (const auto& [promised_ns, site] : expanded_[parent].later) {
    if (IsWanted(parent, expanded_[parent].serials[site])) others.push_back(site);
  }
  expanded_[parent].later.clear();
  if (!others.empty()) FollowAll(parent, others);
}

// Returns the nodes near the change of the rewrite that made the graph, and those of the parent's
// area.
std::vector<bool> Backtracking::AreaOf(DerivedGraphs::Id id, const std::vector<bool>& parents) {
  const Graph graph = graphs_.Get(id);
  const std::vector<NodeId>& place = graphs_.Place(id);
  if (!graphs_.IsLocal(id)) return std::vector<bool>(static_cast<size_t>(graph.size()), true);
  std::vector<bool> area(static_cast<size_t>(graph.size()), true);
  for (size_t then = 0; then < place.size(); ++then) {
    if (place[then] >= 0) area[place[then]] = !parents.empty() && parents[then];
  }
  for (int step = 0; step < kNear; ++step) {
    std::vector<bool> wider = area;
    for (NodeId node = 0; node < graph.size(); ++node) {
      for (const Edge& input : graph.node(node).inputs) {
        if (graph.is_constant(input.node)) continue;
        if (area[node]) wider[input.node] = true;
        if (area[input.node]) wider[node] = true;
      }
    }
    area = std::move(wider);
  }
  return area;
}

// Returns the matches of an expanded graph. Matches that were thrown away are found again in the
// same order; first_serial_ maps their new serials to the first ones.
std::shared_ptr<const MatchSet> Backtracking::Matches(const Expanded& node) {
  std::shared_ptr<const MatchSet> matches = graphs_.Matches(node.graph);
  for (size_t i = 0; i < matches->sites().size(); ++i) {
    const int64_t serial = matches->sites()[i].serial;
    if (serial != node.serials[i]) first_serial_.emplace(serial, node.serials[i]);
  }
  return matches;
}

int64_t Backtracking::SerialOf(const Site& site) const {
  const auto first = first_serial_.find(site.serial);
  return first == first_serial_.end() ? site.serial : first->second;
}

void Backtracking::Expand(int id) {
  Expanded& node = expanded_[id];
  const std::shared_ptr<const MatchSet> matches = graphs_.Matches(node.graph);
  for (const Site& site : matches->sites()) node.serials.push_back(SerialOf(site));
  node.kept = node.serials;
  std::ranges::sort(node.kept);
  if (node.area.empty() && !node.kept.empty()) node.old_serial = node.kept.back();
  std::vector<int> fresh;
  for (int i = 0; i < static_cast<int>(node.serials.size()); ++i) {
    if (!IsNear(node, i, matches->sites()[i])) continue;
    const auto gain = gain_ns_.find(node.serials[i]);
    if (gain == gain_ns_.end() || !node.area.empty()) {
      fresh.push_back(i);
    } else if (node.estimate_ns + gain->second < BoundNs()) {
      node.later.emplace_back(node.estimate_ns + gain->second, i);
    }
  }
  std::ranges::sort(node.later, std::greater<>());
  FollowAll(id, fresh);
}

// Whether a rewrite may follow in a detour: it is new since the detour began, or it is near and is
// not a gain by itself.
bool Backtracking::IsNear(const Expanded& node, int i, const Site& site) const {
  if (node.area.empty() || node.serials[i] > node.old_serial) return true;
  const auto gain = gain_ns_.find(node.serials[i]);
  if (gain != gain_ns_.end() && gain->second < 0) return false;
  return std::ranges::any_of(site.roots, [&](const Edge& root) { return node.area[root.node]; });
}

void Backtracking::FollowAll(int parent, const std::vector<int>& sites) {
  const std::shared_ptr<const MatchSet> matches = Matches(expanded_[parent]);
  const ChildrenRequest request = {
      setting_, graphs_.Children(expanded_[parent].graph, NodesMax(setting_.request)), *matches};
  VisitChildren(
      request, sites, &seen_, [this] { return GraphLimitReached() != StopReason::kNone; },
      [&](int site, ScoredChild child) {
        AddChild(parent, expanded_[parent].serials[site], std::move(child));
      });
}

void Backtracking::AddChild(int parent, int64_t serial, ScoredChild child) {
  ++setting_.run.counts.graphs;
  const double ns = EstimateOf(child.scored);
  if (expanded_[parent].estimate_ns < kNoTimeNs) {
    gain_ns_[serial] = ns - expanded_[parent].estimate_ns;
  }
  if (ns >= BoundNs()) {
    ++setting_.run.counts.pruned;
    return;
  }
  Entry entry{.parent = parent, .rewrite = child.rewrite, .serial = serial};
  const Graph graph = child.child.graph;
  const GraphKey key{ns, child.child.hash};
  entry.graph =
      graphs_.Add(expanded_[parent].graph, std::move(child.rewrite), std::move(child.child));
  if (IsMeasured(child.scored->groups)) {
    Settle(graph, key, entry);
  } else {
    entry.version = setting_.times.version();
    queue_.emplace(key, entry);
  }
}

// Measures and scores the front of the queue until all of it is settled: entries move as their
// estimates change. When no more groups may be measured, graphs with estimates are settled after
// those with measurements, so that the bound for them does not depend on the moment when measuring
// ended. It ends because each entry is measured at most kCoverTurnsMax times and then settled.
void Backtracking::SettleFront() {
  for (auto front = TakeUnsettledFront(); !front.empty(); front = TakeUnsettledFront()) {
    const bool is_exhausted = setting_.times.Exhausted();
    const int settled_before = settled_;
    std::vector<std::pair<GraphKey, Entry>> estimated;
    const int64_t version = setting_.times.version();
    const auto keeps_score = [&](const Entry& entry) {
      return is_exhausted && entry.version == version && entry.turns < kCoverTurnsMax;
    };
    std::vector<Graph> graphs;
    for (const auto& [key, entry] : front) {
      if (!keeps_score(entry)) graphs.push_back(graphs_.Get(entry.graph));
    }
    const std::vector<StatusOr<ScoredGraph>> scores = ScoreGraphs(graphs, setting_);
    size_t next = 0;
    for (auto& [key, entry] : front) {
      if (keeps_score(entry)) {
        if (key.first < BoundNs()) estimated.emplace_back(key, entry);
        continue;
      }
      const Graph& graph = graphs[next];
      const StatusOr<ScoredGraph>& scored = scores[next++];
      if (EstimateOf(scored) >= BoundNs()) {
        ++setting_.run.counts.pruned;
        continue;
      }
      const GraphKey now{scored->estimate_ns, key.second};
      entry.version = version;
      if (IsMeasured(scored->groups) || entry.turns == kCoverTurnsMax) {
        Settle(graph, now, entry);
        continue;
      }
      if (is_exhausted) {
        estimated.emplace_back(now, entry);
        continue;
      }
      WantUnmeasured(graph, *scored, setting_);
      ++entry.turns;
      queue_.emplace(now, entry);
    }
    SettleEstimated(estimated, /*wait=*/settled_ != settled_before);
    setting_.times.MeasureWanted();
  }
}

void Backtracking::SettleEstimated(const std::vector<std::pair<GraphKey, Entry>>& estimated,
                                   bool wait) {
  for (const auto& [key, entry] : estimated) {
    if (wait) {
      queue_.emplace(key, entry);
    } else if (key.first < BoundNs()) {
      stop_ = StopReason::kGroups;
      Settle(graphs_.Get(entry.graph), key, entry);
    }
  }
}

std::vector<std::pair<GraphKey, Backtracking::Entry>> Backtracking::TakeUnsettledFront() {
  std::vector<std::pair<GraphKey, Entry>> front;
  size_t place = 0;
  for (auto it = queue_.begin(); it != queue_.end() && place < kLookAhead; ++place) {
    if (it->first.first >= BoundNs()) break;
    const auto next = std::next(it);
    if (it->second.step < 0) front.emplace_back(it->first, queue_.extract(it).mapped());
    it = next;
  }
  return front;
}

// Puts a graph with a final estimate into the queue and among the best.
void Backtracking::Settle(const Graph& graph, const GraphKey& key, Entry entry) {
  const Expanded& parent = expanded_[entry.parent];
  // A parent that needs a failed group has no estimate, so there is no gain.
  const bool has_gain = parent.estimate_ns < kNoTimeNs;
  if (has_gain) gain_ns_[entry.serial] = key.first - parent.estimate_ns;
  const bool begins_round = entry.parent == 0;  // expanded_[0] is the root.
  const double gain_ns = has_gain ? parent.estimate_ns - key.first : 0;
  entry.step = trail_.Add(parent.step, {entry.rewrite, begins_round, gain_ns});
  least_.Add(key.first);
  ++settled_;
  Offer(graph, key, entry.step);
  queue_.emplace(key, entry);
}

void Backtracking::Offer(const Graph& graph, const GraphKey& key, int step) {
  if (!skip_->contains(key.second)) best_.Offer(graph, key, step);
}

}  // namespace ag
