#include "plan/fusion/path_cover.h"

#include <algorithm>
#include <span>

#include "absl/container/flat_hash_map.h"
#include "plan/fusion/group_key.h"
#include "plan/spec/pattern_match.h"

namespace ag {
namespace {

// The patterns by their anchor: those that begin with `op` are
// patterns[begin[op] .. begin[op + 1]), in the order of the spec.
class Anchors {
 public:
  explicit Anchors(const DeviceSpec& spec) : begin_(kOpKindCount + 1) {
    const auto each = [&](const auto& visit) {
      for (size_t p = 0; p < spec.patterns.size(); ++p) {
        if (spec.patterns[p].steps.empty()) continue;
        for (const OpKind op : spec.patterns[p].steps[0].ops) visit(static_cast<size_t>(op), p);
      }
    };
    each([&](size_t op, size_t) { ++begin_[op + 1]; });
    for (size_t op = 0; op < kOpKindCount; ++op) begin_[op + 1] += begin_[op];
    patterns_.resize(begin_.back());
    std::vector<size_t> next(begin_.begin(), begin_.end() - 1);
    each([&](size_t op, size_t pattern) { patterns_[next[op]++] = pattern; });
  }

  std::span<const size_t> Of(OpKind op) const {
    const auto at = static_cast<size_t>(op);
    return std::span(patterns_).subspan(begin_[at], begin_[at + 1] - begin_[at]);
  }

 private:
  std::vector<size_t> begin_;
  std::vector<size_t> patterns_;  // Positions in the spec.
};

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
      : in_(request),
        graph_(request.graph),
        keys_(request.graph, request.layouts),
        anchors_(request.spec) {
    for (const GroupPattern& pattern : in_.spec.patterns) {
      frames_.push_back(KeyOfFrame(
          {pattern.name, in_.policy.precision, in_.options.cores, in_.policy.cold_cache}));
    }
  }

  StatusOr<std::vector<PathGroup>> Run() {
    FindCandidates();
    AG_TRY(Solve());
    return Collect();
  }

 private:
  // A group that may be chosen. Those with one last operator are a list in the order of finding.
  struct Candidate {
    NodeId first = 0;
    size_t pattern = 0;  // In the spec.
    int time = 0;        // In times_.
    int tree = -1;       // In trees_; -1: a path alone.
    int next = -1;       // In candidates_.
  };
  struct List {
    int first = -1, last = -1;  // In candidates_.
  };

  bool IsOpen(NodeId id) const {
    return !in_.taken[id] && graph_.node(id).op != OpKind::kInput && !graph_.is_constant(id);
  }

  // Lists candidates by last operator, so that Solve knows the costs below them in time.
  void FindCandidates() {
    endings_.resize(graph_.size());
    open_.reserve(static_cast<size_t>(graph_.size()));
    candidates_.reserve(static_cast<size_t>(graph_.size()));
    known_.reserve(static_cast<size_t>(graph_.size()) / 2);
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (!IsOpen(id)) continue;
      open_.push_back(id);
      path_.clear();
      prefixes_.clear();
      for (const size_t pattern : anchors_.Of(graph_.node(id).op)) WalkFrom(id, pattern);
    }
  }

  // Always: path_ holds the operators from `first` along reader[] as far as a walk from it went,
  // and prefixes_[i] the path of the first i + 1 of them.
  void WalkFrom(NodeId first, size_t p) {
    const GroupPattern& pattern = in_.spec.patterns[p];
    const OpKind anchor = graph_.node(first).op;
    uint32_t match = BeginMatch(pattern, graph_, first);
    if (match == 0) return;
    const Layout layout = in_.layouts.of[first];
    const auto& listed = pattern.layouts;
    if (!listed.empty() && std::ranges::count(listed, layout) == 0) return;
    const int nodes_max = in_.options.grouped ? NodesMax(pattern) : 1;
    NodeId last = first;
    for (int length = 1;; ++length) {
      if (static_cast<int>(path_.size()) < length) Extend(last);
      if (IsWholeMatch(pattern, match)) AddCandidate(p, length);
      const NodeId next = in_.reader[last];
      if (next < 0 || length == nodes_max) return;
      match = ExtendMatch(pattern, match, graph_, {anchor, {last, 0}, next});
      if (match == 0) return;
      last = next;
    }
  }

  void Extend(NodeId id) {
    path_.push_back(id);
    prefixes_.push_back(prefixes_.empty() ? GroupKeys::Path() : prefixes_.back());
    keys_.Extend(&prefixes_.back(), id);
  }

  void AddCandidate(size_t pattern, int length) {
    const int added = static_cast<int>(candidates_.size());
    List& list = endings_[path_[length - 1]];
    if (list.first < 0) list.first = added;
    if (list.last >= 0) candidates_[list.last].next = added;
    list.last = added;
    const std::span<const NodeId> path(path_.data(), static_cast<size_t>(length));
    std::vector<NodeId> nodes = WithTransposes(pattern, path);
    if (nodes.size() == path.size()) {
      candidates_.push_back({path_[0], pattern, TimeOf(prefixes_[length - 1], pattern, path)});
      return;
    }
    const int time = TimeOf(keys_.OfTree(nodes), pattern, nodes);
    candidates_.push_back({path_[0], pattern, time, static_cast<int>(trees_.size())});
    trees_.push_back(std::move(nodes));
  }

  // Returns the operators of a path and the transposes that join it, ascending.
  std::vector<NodeId> WithTransposes(size_t p, std::span<const NodeId> path) const {
    std::vector<NodeId> nodes(path.begin(), path.end());
    const GroupPattern& pattern = in_.spec.patterns[p];
    if (!std::ranges::any_of(pattern.steps, &PatternStep::takes_transposes)) return nodes;
    for (const NodeId at : path) {
      if (!TakesTransposes(pattern, graph_, at)) continue;
      for (const Edge operand : graph_.node(at).inputs) {
        NodeId reader = at;
        for (NodeId id = operand.node;
             IsOpen(id) && graph_.node(id).op == OpKind::kTranspose && in_.reader[id] == reader;
             reader = id, id = graph_.node(id).inputs[0].node) {
          if (std::ranges::count(path, id) == 0) nodes.push_back(id);
        }
      }
    }
    std::ranges::sort(nodes);
    return nodes;
  }

  // Returns where the time of the operators as one group is in times_.
  int TimeOf(const GroupKeys::Path& path, size_t pattern, std::span<const NodeId> nodes) {
    const LocalKey key = GroupKeys::KeyOf(path, frames_[pattern]);
    const auto [it, is_new] = known_.try_emplace(key, static_cast<int>(times_.size()));
    if (!is_new) return it->second;
    if (auto time = in_.times.Lookup(key)) {
      times_.push_back(*std::move(time));
      return it->second;
    }
    Group group = MakeGroup(graph_, in_.layouts, {nodes.begin(), nodes.end()});
    group.pattern = in_.spec.patterns[pattern].name;
    group.cores = in_.options.cores;
    times_.push_back(in_.times.Time(ExtractGroup(graph_, group, in_.policy)));
    in_.times.Insert(key, times_.back());
    return it->second;
  }

  // best_[v]: the cost of the cheapest cover of v and everything that leads to it, if a group ends
  // at v. hanging_[v]: the sum of best_ over the operators whose reader is v. end_ns_[v]: the end
  // of that group (EndOf), or of a view; of equally cheap covers the one that ends first is taken,
  // so that the choice shortens the critical path and does not depend on the order of nodes.
  Status Solve() {
    best_.assign(graph_.size(), {});
    hanging_.assign(graph_.size(), {});
    end_ns_.assign(graph_.size(), 0);
    chosen_.assign(graph_.size(), -1);
    NodeId stuck = -1;  // The first operator without a finite cost.
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (in_.taken[id]) end_ns_[id] = EndOfView(id);
      if (!IsOpen(id)) continue;
      best_[id] = kInfiniteCost;
      for (int i = endings_[id].first; i >= 0; i = candidates_[i].next) {
        const Cost cost = CostOf(candidates_[i], id);
        const bool is_cheaper = IsLess(cost, best_[id]);
        if (!is_cheaper && IsLess(best_[id], cost)) continue;
        const double end_ns = EndOf(candidates_[i], id);
        if (!is_cheaper && end_ns >= end_ns_[id]) continue;
        best_[id] = cost;
        end_ns_[id] = end_ns;
        chosen_[id] = i;
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

  // Sums of the same terms in another order differ by less.
  static bool IsLess(Cost a, Cost b) {
    return a.failed != b.failed ? a.failed < b.failed : a.ns < b.ns * (1 - 1e-9);
  }

  // Returns when the tensors that a view reads are there.
  double EndOfView(NodeId id) const {
    double end_ns = 0;
    for (const Edge operand : graph_.node(id).inputs) {
      end_ns = std::max(end_ns, end_ns_[operand.node]);
    }
    return end_ns;
  }

  // Returns when the group ends if every group begins as soon as its operands are there.
  double EndOf(const Candidate& group, NodeId last) const {
    double begin_ns = 0;
    if (group.tree >= 0) {
      ForOperands(trees_[group.tree],
                  [&](NodeId, NodeId from) { begin_ns = std::max(begin_ns, end_ns_[from]); });
      return begin_ns + times_[group.time].ns;
    }
    for (NodeId id = group.first, before = -1;; before = id, id = in_.reader[id]) {
      for (const Edge operand : graph_.node(id).inputs) {
        if (operand.node != before) begin_ns = std::max(begin_ns, end_ns_[operand.node]);
      }
      if (id == last) return begin_ns + times_[group.time].ns;
    }
  }

  // Calls visit(operator, operand's operator) for what the operators of a tree read from outside.
  template <class Visit>
  void ForOperands(const std::vector<NodeId>& tree, const Visit& visit) const {
    for (const NodeId id : tree) {
      for (const Edge operand : graph_.node(id).inputs) {
        if (!std::ranges::binary_search(tree, operand.node)) visit(id, operand.node);
      }
    }
  }

  Cost CostOf(const Candidate& group, NodeId last) const {
    const GroupTime& time = times_[group.time];
    if (group.tree >= 0) {
      Cost cost = Cost::Of(time);
      cost.ns -= time.noise_ns;
      ForOperands(trees_[group.tree], [&](NodeId id, NodeId from) {
        if (in_.reader[from] == id) cost += best_[from];
      });
      return cost;
    }
    Cost cost = Cost::Of(time) + hanging_[group.first];
    if (group.first != last) cost.ns -= time.noise_ns;
    for (NodeId id = group.first; id != last; id = in_.reader[id]) {
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

  std::vector<PathGroup> Collect() const {
    std::vector<PathGroup> groups;
    std::vector<bool> covered(graph_.size());
    for (auto at = open_.rbegin(); at != open_.rend(); ++at) {
      const NodeId id = *at;
      const bool is_last = chosen_[id] >= 0 && !covered[id];
      if (!is_last) continue;
      const Candidate& chosen = candidates_[chosen_[id]];
      const bool is_tree = chosen.tree >= 0;
      groups.push_back({chosen.first, id, is_tree ? trees_[chosen.tree] : std::vector<NodeId>(),
                        &in_.spec.patterns[chosen.pattern], times_[chosen.time]});
      for (const NodeId in : groups.back().nodes) covered[in] = true;
      for (NodeId in = chosen.first; in != id; in = in_.reader[in]) covered[in] = true;
    }
    std::ranges::reverse(groups);
    return groups;
  }

  const CoverRequest& in_;
  const Graph& graph_;
  const GroupKeys keys_;
  const Anchors anchors_;
  std::vector<LocalKey> frames_;  // By pattern.
  std::vector<NodeId> open_;      // The operators to cover, ascending.
  std::vector<NodeId> path_;
  std::vector<GroupKeys::Path> prefixes_;
  std::vector<Candidate> candidates_;
  std::vector<std::vector<NodeId>> trees_;
  std::vector<List> endings_;                 // By last operator.
  absl::flat_hash_map<LocalKey, int> known_;  // Where a time is in times_.
  std::vector<GroupTime> times_;
  std::vector<Cost> best_;
  std::vector<Cost> hanging_;
  std::vector<double> end_ns_;
  std::vector<int> chosen_;  // In candidates_; -1: none.
};

}  // namespace

StatusOr<std::vector<PathGroup>> CoverByPaths(const CoverRequest& request) {
  return Cover(request).Run();
}

std::vector<NodeId> PathOf(const std::vector<NodeId>& reader, NodeId first, NodeId last) {
  size_t length = 1;
  for (NodeId at = first; at != last; at = reader[at]) ++length;
  std::vector<NodeId> path;
  path.reserve(length);
  path.push_back(first);
  while (path.back() != last) path.push_back(reader[path.back()]);
  return path;
}

Group MakeGroup(const Graph& graph, const NodeLayouts& layouts, std::vector<NodeId> nodes) {
  Group group;
  for (const NodeId id : nodes) {
    const Node& node = graph.node(id);
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const Edge edge = node.inputs[k];
      const bool is_inside = std::ranges::binary_search(nodes, edge.node);
      if (is_inside || graph.is_constant(edge.node)) continue;
      const Port port{edge, layouts.Read(graph, id, k)};
      if (std::ranges::count(group.inputs, port) == 0) group.inputs.push_back(port);
    }
  }
  const NodeId last = nodes.back();
  for (size_t i = 0; i < graph.node(last).outputs.size(); ++i) {
    const Edge edge{last, static_cast<int32_t>(i)};
    if (graph.uses(edge).empty() && !graph.is_output(edge)) continue;
    group.outputs.push_back({edge, layouts.Written(graph, edge)});
  }
  group.nodes = std::move(nodes);
  return group;
}

}  // namespace ag
