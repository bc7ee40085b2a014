#include "plan/fusion/path_cover.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "plan/fusion/group_key.h"
#include "plan/spec/pattern_match.h"

namespace ag {
namespace {

// Finds the cheapest cover in three steps:
//   - FindCandidates walks from each operator along reader[] for each pattern and lists the groups
//     on the way by their last operator. A walk ends at the pattern's end or its nodes_max.
//   - Solve goes through the operators in topological order. The edges of reader[] form a forest,
//     and a group's time does not depend on its neighbours. So the best cost of a group that ends
//     at v is its time plus the best costs of all subtrees that hang on its path, and these are
//     known already.
//   - Collect takes the chosen groups, from the roots down.
// Exact on each tree; trees do not influence each other. With C candidates of at most L operators,
// the time is O(C L) plus one Time call per new local key.
class Cover {
 public:
  explicit Cover(const CoverRequest& request)
      : in_(request), graph_(request.graph), keys_(request.graph, request.layouts) {}

  StatusOr<std::vector<PathGroup>> Run() {
    FindCandidates();
    AG_TRY(Solve());
    return Collect();
  }

 private:
  // Lists candidates by last operator, so that Solve knows the costs below them in time.
  void FindCandidates() {
    endings_.resize(graph_.size());
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_.node(id);
      if (in_.taken[id] || node.op == OpKind::kInput || graph_.is_constant(id)) continue;
      for (const GroupPattern& pattern : in_.spec.patterns) WalkFrom(id, pattern);
    }
  }

  void WalkFrom(NodeId first, const GroupPattern& pattern) {
    const OpKind anchor = graph_.node(first).op;
    uint32_t match = BeginMatch(pattern, graph_, first);
    if (match == 0) return;
    const Layout layout = in_.layouts.of[first];
    const auto& listed = pattern.layouts;
    if (!listed.empty() && std::ranges::count(listed, layout) == 0) return;
    const int nodes_max = in_.options.grouped ? NodesMax(pattern) : 1;
    NodeId last = first;
    path_.assign(1, first);
    while (true) {
      if (IsWholeMatch(pattern, match)) {
        endings_[last].push_back({first, last, &pattern, TimeOfPath(pattern)});
      }
      const NodeId next = in_.reader[last];
      if (next < 0 || static_cast<int>(path_.size()) == nodes_max) return;
      if (!IsStepUsable(graph_, anchor, {last, 0}, next)) return;
      match = ExtendMatch(pattern, match, graph_, next);
      if (match == 0) return;
      last = next;
      path_.push_back(last);
    }
  }

  // Returns the time of the operators of path_ as one group.
  GroupTime TimeOfPath(const GroupPattern& pattern) {
    const LocalKey key = keys_.OfPath(
        path_, {pattern.name, in_.policy.precision, in_.options.cores, in_.policy.cold_cache});
    const auto [it, is_new] = known_.try_emplace(key);
    if (!is_new) return it->second;
    if (auto time = in_.times.Lookup(key)) return it->second = *std::move(time);
    Group group = MakeGroup(graph_, in_.layouts, path_);
    group.pattern = pattern.name;
    group.cores = in_.options.cores;
    it->second = in_.times.Time(ExtractGroup(graph_, group, in_.policy));
    in_.times.Insert(key, it->second);
    return it->second;
  }

  // best_[v]: the cost of the cheapest cover of v and everything that leads to it, if a group ends
  // at v. hanging_[v]: the sum of best_ over the operators whose reader is v.
  Status Solve() {
    best_.assign(graph_.size(), {});
    hanging_.assign(graph_.size(), {});
    chosen_.assign(graph_.size(), -1);
    NodeId stuck = -1;  // The first operator without a finite cost.
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_.node(id);
      if (in_.taken[id] || node.op == OpKind::kInput || graph_.is_constant(id)) continue;
      best_[id] = kInfiniteCost;
      for (size_t i = 0; i < endings_[id].size(); ++i) {
        const Cost cost = CostOf(endings_[id][i]);
        if (cost >= best_[id]) continue;
        best_[id] = cost;
        chosen_[id] = static_cast<int>(i);
      }
      if (best_[id] == kInfiniteCost && stuck < 0) stuck = id;
      if (in_.reader[id] >= 0) {
        hanging_[in_.reader[id]] += best_[id];
      } else if (chosen_[id] < 0) {
        return Err(StatusCode::kUnimplemented, "{}: device {} has no pattern for it in layout {}",
                   Info(graph_.node(stuck).op).name, in_.spec.name,
                   LayoutName(in_.layouts.of[stuck]));
      }
    }
    return OkStatus();
  }

  Cost CostOf(const PathGroup& group) const {
    Cost cost = Cost::Of(group.time) + hanging_[group.first];
    if (group.first != group.last) cost.ns -= group.time.noise_ns;
    for (NodeId id = group.first; id != group.last; id = in_.reader[id]) {
      // The operator before is in the group, so its cost is taken out. Infinities do not subtract.
      const NodeId next = in_.reader[id];
      if (hanging_[next] == kInfiniteCost) {
        cost += HangingWithout(next, id);
      } else {
        cost += hanging_[next] - best_[id];
      }
    }
    return cost;
  }

  Cost HangingWithout(NodeId id, NodeId excluded) const {
    Cost sum;
    for (const Edge operand : graph_.node(id).inputs) {
      const NodeId from = operand.node;
      if (from != excluded && in_.reader[from] == id) sum += best_[from];
    }
    return sum;
  }

  StatusOr<std::vector<PathGroup>> Collect() {
    std::vector<PathGroup> groups;
    std::vector<bool> covered(graph_.size());
    for (NodeId id = graph_.size() - 1; id >= 0; --id) {
      const bool is_last = chosen_[id] >= 0 && !covered[id];
      if (!is_last) continue;
      groups.push_back(endings_[id][chosen_[id]]);
      for (NodeId at = groups.back().first; at != id; at = in_.reader[at]) covered[at] = true;
    }
    std::ranges::reverse(groups);
    return groups;
  }

  const CoverRequest& in_;
  const Graph& graph_;
  GroupKeys keys_;
  std::vector<NodeId> path_;
  std::vector<std::vector<PathGroup>> endings_;  // By last operator.
  absl::flat_hash_map<LocalKey, GroupTime> known_;
  std::vector<Cost> best_;
  std::vector<Cost> hanging_;
  std::vector<int> chosen_;
};

}  // namespace

StatusOr<std::vector<PathGroup>> CoverByPaths(const CoverRequest& request) {
  return Cover(request).Run();
}

std::vector<NodeId> PathOf(const std::vector<NodeId>& reader, NodeId first, NodeId last) {
  std::vector<NodeId> path{first};
  while (path.back() != last) path.push_back(reader[path.back()]);
  return path;
}

Group MakeGroup(const Graph& graph, const NodeLayouts& layouts, std::vector<NodeId> path) {
  Group group;
  for (size_t i = 0; i < path.size(); ++i) {
    const Node& node = graph.node(path[i]);
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const Edge edge = node.inputs[k];
      const bool is_link = i > 0 && edge.node == path[i - 1];
      if (is_link || graph.is_constant(edge.node)) continue;
      const Port port{edge, layouts.Read(graph, path[i], k)};
      if (std::ranges::count(group.inputs, port) == 0) group.inputs.push_back(port);
    }
  }
  const NodeId last = path.back();
  for (size_t i = 0; i < graph.node(last).outputs.size(); ++i) {
    const Edge edge{last, static_cast<int32_t>(i)};
    if (graph.uses(edge).empty() && !graph.is_output(edge)) continue;
    group.outputs.push_back({edge, layouts.Written(graph, edge)});
  }
  group.nodes = std::move(path);
  return group;
}

}  // namespace ag
