#include "plan/fusion/cover.h"

#include <algorithm>
#include <array>
#include <span>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "graph/operators_of.h"
#include "plan/fusion/group_key.h"
#include "plan/fusion/node_marks.h"
#include "plan/fusion/take_in.h"
#include "plan/fusion/tree_finder.h"
#include "plan/spec/pattern_match.h"

namespace ag {
namespace {

using OpSet = std::array<bool, kOpKindCount>;

OpSet OpsOf(const Graph& graph) {
  OpSet ops = {};
  for (const Node& node : graph.nodes()) ops[static_cast<size_t>(node.op)] = true;
  return ops;
}

// Whether the graph has an operator for each step behind the first that may not be missing.
bool IsUsable(const GroupPattern& pattern, const OpSet& ops, const GroupingOptions& options) {
  if (std::ranges::count(options.without, pattern.name) > 0) return false;
  const auto is_there = [&](OpKind op) { return ops[static_cast<size_t>(op)]; };
  for (size_t i = 1; i < pattern.steps.size(); ++i) {
    const PatternStep& step = pattern.steps[i];
    if (!step.optional && !std::ranges::any_of(step.ops, is_there)) return false;
  }
  return !pattern.steps.empty();
}

// Finds the cheapest cover in one pass through the operators in topological order, then collects
// the chosen groups from the roots down. At an operator v:
//   - WalkFrom goes along the readers for each pattern that may begin with v, and lists the groups
//     on the way by their last operator. A walk ends at the pattern's end or its nodes_max.
//   - AddTrees lists the groups that are trees with the root v, or go on from one.
//   - Choose takes the best group that ends at v. Each operator hangs on one reader, so operators
//     are a forest, and a group's time does not depend on its neighbours. So the best cost of a
//     group that ends at v is its time plus the best costs of all subtrees that hang on it, and
//     these are known already.
// Exact on each tree over the listed groups; trees do not influence each other. With C groups of at
// most L operators, the time is O(C L) plus one Time call per new local key.
class Cover {
 public:
  explicit Cover(const CoverRequest& request)
      : in_(request),
        reader_(request.forest.reader),
        graph_(request.graph),
        keys_(request.graph, request.layouts, request.basis.keys),
        inside_(request.graph.size()) {
    for (size_t p = 0; p < in_.spec.patterns.size(); ++p) {
      if (!in_.basis.patterns[p].has_trees) continue;
      finders_.emplace_back(p, TreeFinder(in_, in_.spec.patterns[p]));
    }
  }

  Status Run(BriefGroups* groups) {
    Reserve();
    for (const NodeId id : in_.basis.operators) {
      if (in_.forest.taken[id] != 0) {
        end_ns_[id] = EndOfView(id);
        continue;
      }
      path_.clear();
      prefix_keys_.clear();
      for (const size_t pattern : in_.basis.BegunBy(graph_.node(id).op)) WalkFrom(id, pattern);
      for (auto& [pattern, finder] : finders_) AddTrees(pattern, &finder, id);
      Choose(id);
      if (best_[id] == kInfiniteCost && stuck_ < 0) stuck_ = id;
      if (reader_[id] >= 0) {
        hanging_[reader_[id]] += best_[id];
      } else if (chosen_[id] < 0) {
        return Err(StatusCode::kUnimplemented, "{}: device {} has no pattern for it in layout {}",
                   Info(graph_.node(stuck_).op).name, in_.spec.name,
                   LayoutName(in_.layouts.of[stuck_]));
      }
    }
    Collect(groups);
    return OkStatus();
  }

 private:
  using Nodes = absl::InlinedVector<NodeId, 16>;

  // Operators that are no path alone: some of piece_nodes_.
  struct Piece {
    int begin = 0, end = 0;
  };
  // A group that may be chosen. Those with one last operator are a list in the order of finding.
  struct Candidate {
    NodeId first = 0;
    size_t pattern = 0;  // In the spec.
    int time = 0;        // In times_.
    Piece piece;         // Nothing: a path of operators without other uses.
    int next = -1;       // In candidates_.
  };
  struct List {
    int first = -1, last = -1;  // In candidates_.
  };
  struct TimedKey {
    BriefTime time;
    LocalKey key;
  };

  bool IsOpen(NodeId id) const {
    return in_.forest.taken[id] == 0 && graph_.node(id).op != OpKind::kInput &&
           !graph_.is_constant(id);
  }

  void Reserve() {
    const auto size = static_cast<size_t>(graph_.size());
    const size_t operators = in_.basis.operators.size();
    endings_.resize(size);
    candidates_.reserve(4 * operators);
    times_.reserve(2 * operators);
    known_.reserve(2 * operators);
    best_.assign(size, {});
    hanging_.assign(size, {});
    end_ns_.assign(size, 0);
    chosen_.assign(size, -1);
  }

  // Returns the match after `next`, which reads `last`.
  uint32_t Extended(size_t p, uint32_t match, OpKind anchor, NodeId last, NodeId next) const {
    if (in_.forest.shared[last] != 0) match &= in_.basis.patterns[p].shared_steps;
    if (match == 0) return 0;
    return ExtendMatch(in_.spec.patterns[p], match, graph_, {anchor, {last, 0}, next});
  }

  bool IsListed(size_t p, NodeId id) const {
    const auto& listed = in_.spec.patterns[p].layouts;
    return listed.empty() || std::ranges::count(listed, in_.layouts.of[id]) > 0;
  }

  // Always: path_ holds the operators from `first` along their readers as far as a walk from it
  // went, prefix_keys_[i] the key of the first i + 1 of them, and prefix_ the record of all.
  void WalkFrom(NodeId first, size_t p) {
    const GroupPattern& pattern = in_.spec.patterns[p];
    const OpKind anchor = graph_.node(first).op;
    uint32_t match = BeginMatch(pattern, graph_, first);
    if (match == 0 || !IsListed(p, first)) return;
    const int nodes_max = in_.basis.patterns[p].nodes_max;
    NodeId last = first;
    bool has_shared = false;
    for (int length = 1;; ++length) {
      if (static_cast<int>(path_.size()) < length) Extend(last);
      if (IsWholeMatch(pattern, match)) AddPath(p, length, has_shared);
      const NodeId next = reader_[last];
      if (next < 0 || length == nodes_max) return;
      match = Extended(p, match, anchor, last, next);
      if (match == 0) return;
      has_shared = has_shared || in_.forest.shared[last] != 0;
      last = next;
    }
  }

  void Extend(NodeId id) {
    if (path_.empty()) prefix_.Clear();
    path_.push_back(id);
    keys_.Extend(&prefix_, id);
    prefix_keys_.push_back(prefix_.key);
  }

  void AddPath(size_t pattern, int length, bool has_shared) {
    const std::span<const NodeId> path(path_.data(), static_cast<size_t>(length));
    if (has_shared || in_.basis.patterns[pattern].takes_movements) {
      const Nodes nodes = WithTransposes(pattern, path);
      if (in_.basis.patterns[pattern].takes_movements && !HasForm(graph_, nodes)) return;
      if (has_shared || nodes.size() != path.size()) return AddPiece(pattern, nodes);
    }
    const int time = TimeOf(prefix_keys_[length - 1], pattern, path);
    Add({path_[0], pattern, time}, path_[length - 1]);
  }

  // `nodes`: ascending.
  void AddPiece(size_t pattern, std::span<const NodeId> nodes) {
    inside_.Set(nodes);
    if (!AreReadersLater(nodes)) return;
    const int time = TimeOf(keys_.OfPiece(nodes, inside_).key, pattern, nodes);
    const auto begin = static_cast<int>(piece_nodes_.size());
    piece_nodes_.insert(piece_nodes_.end(), nodes.begin(), nodes.end());
    const Piece piece{begin, static_cast<int>(piece_nodes_.size())};
    Add({nodes[0], pattern, time, piece}, nodes.back());
  }

  // Returns true when every reader outside of what the operators but the last one make comes after
  // the last one, and no more than kOutputsMax values are read outside. Such groups have an order,
  // that of their last operators, in which each comes after all that it reads, so no two of them
  // wait for each other. `nodes` are ascending and those of inside_.
  bool AreReadersLater(std::span<const NodeId> nodes) const {
    const NodeId last = nodes.back();
    int outputs = 1;
    for (const NodeId id : nodes) {
      if (id == last) continue;
      bool is_output = graph_.is_output({id, 0});
      const auto uses = graph_.uses({id, 0});
      for (const Use& use : uses) {
        if (use.node > last) {
          is_output = true;
          continue;
        }
        if (uses.size() == 1) continue;  // By the operator that it hangs on.
        if (!inside_.Has(use.node)) return false;
        const auto operand = static_cast<size_t>(use.index);
        if (!in_.layouts.ReadsAsWritten(graph_, use.node, operand)) return false;
      }
      outputs += is_output ? 1 : 0;
    }
    return outputs <= kOutputsMax;
  }

  void Add(const Candidate& candidate, NodeId last) {
    const int added = static_cast<int>(candidates_.size());
    List& list = endings_[last];
    if (list.first < 0) list.first = added;
    if (list.last >= 0) candidates_[list.last].next = added;
    list.last = added;
    candidates_.push_back(candidate);
  }

  // Lists the trees with this root and what goes on from them by other steps. Paths are found by
  // walks.
  void AddTrees(size_t p, TreeFinder* finder, NodeId root) {
    if (!IsListed(p, root)) return;
    const GroupPattern& pattern = in_.spec.patterns[p];
    const auto nodes_max = static_cast<size_t>(in_.basis.patterns[p].nodes_max);
    const auto rest = [&](std::span<const NodeId> nodes) { return RestOf(nodes); };
    for (const TreeFinder::Tree& tree : finder->At(root, rest)) {
      if (tree.is_path) continue;
      Nodes nodes = tree.nodes;
      const OpKind anchor = graph_.node(nodes[0]).op;
      uint32_t match = 1;
      while (match != 0) {
        if (IsWholeMatch(pattern, match)) AddPiece(p, nodes);
        const NodeId next = reader_[nodes.back()];
        if (next < 0 || nodes.size() == nodes_max) break;
        match = Extended(p, match, anchor, nodes.back(), next) & ~1u;
        nodes.push_back(next);
      }
    }
  }

  // Returns the operators of a path and the transposes that join it, ascending.
  Nodes WithTransposes(size_t p, std::span<const NodeId> path) const {
    Nodes nodes(path.begin(), path.end());
    if (!in_.basis.patterns[p].takes_movements) return nodes;
    const GroupPattern& pattern = in_.spec.patterns[p];
    for (const NodeId at : path) {
      if (!TakesTransposes(pattern, graph_, at)) continue;
      for (const Edge operand : graph_.node(at).inputs) {
        NodeId reader = at;
        for (NodeId id = operand.node; IsOpen(id) && graph_.node(id).op == OpKind::kTranspose &&
                                       reader_[id] == reader && in_.forest.shared[id] == 0;
             reader = id, id = graph_.node(id).inputs[0].node) {
          if (std::ranges::count(path, id) == 0) nodes.push_back(id);
        }
      }
    }
    std::ranges::sort(nodes);
    return nodes;
  }

  // Returns where the time of the operators as one group is in times_.
  int TimeOf(const LocalKey& path, size_t pattern, std::span<const NodeId> nodes) {
    const LocalKey key = GroupKeys::KeyOf(path, in_.basis.patterns[pattern].frame);
    const auto [it, is_new] = known_.try_emplace(key, static_cast<int>(times_.size()));
    if (!is_new) return it->second;
    const BriefTime time = in_.times.BriefTimeOf(key, [&] {
      Group group = MakeGroup(graph_, in_.layouts, {nodes.begin(), nodes.end()});
      group.pattern = in_.spec.patterns[pattern].name;
      group.cores = in_.options.cores;
      return ExtractGroup(graph_, group, in_.policy);
    });
    times_.push_back({time, key});
    return it->second;
  }

  // best_[v]: the cost of the cheapest cover of v and everything that leads to it, if a group ends
  // at v. hanging_[v]: the sum of best_ over the operators whose reader is v. end_ns_[v]: the end
  // of that group (EndOf), or of a view; of equally cheap covers the one that ends first is taken,
  // so that the choice shortens the critical path and does not depend on the order of nodes.
  void Choose(NodeId id) {
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
  double EndOf(const Candidate& group, NodeId last) {
    double begin_ns = 0;
    if (const auto piece = PieceOf(group); !piece.empty()) {
      ForOperands(piece,
                  [&](NodeId, NodeId from) { begin_ns = std::max(begin_ns, end_ns_[from]); });
      return begin_ns + times_[group.time].time.ns;
    }
    for (NodeId id = group.first, before = -1;; before = id, id = reader_[id]) {
      for (const Edge operand : graph_.node(id).inputs) {
        if (operand.node != before) begin_ns = std::max(begin_ns, end_ns_[operand.node]);
      }
      if (id == last) return begin_ns + times_[group.time].time.ns;
    }
  }

  // Calls visit(operator, operand's operator) for what the operators of a piece read from outside,
  // once for each two.
  template <class Visit>
  void ForOperands(std::span<const NodeId> piece, const Visit& visit) {
    inside_.Set(piece);
    for (const NodeId id : piece) {
      const auto& inputs = graph_.node(id).inputs;
      for (size_t i = 0; i < inputs.size(); ++i) {
        const NodeId from = inputs[i].node;
        const auto is_same = [&](const Edge& edge) { return edge.node == from; };
        if (std::any_of(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(i), is_same)) {
          continue;
        }
        if (!inside_.Has(from)) visit(id, from);
      }
    }
  }

  std::span<const NodeId> PieceOf(const Candidate& group) const {
    return std::span(piece_nodes_).subspan(group.piece.begin, group.piece.end - group.piece.begin);
  }

  // Returns the cost of everything that leads to a piece.
  Cost RestOf(std::span<const NodeId> piece) {
    Cost cost;
    ForOperands(piece, [&](NodeId id, NodeId from) {
      if (reader_[from] == id) cost += best_[from];
    });
    return cost;
  }

  Cost CostOf(const Candidate& group, NodeId last) {
    const BriefTime& time = times_[group.time].time;
    Cost cost = Cost::Of(time);
    if (group.first != last) cost.ns -= time.noise_ns;
    if (const auto piece = PieceOf(group); !piece.empty()) return cost + RestOf(piece);
    cost += hanging_[group.first];
    for (NodeId id = group.first; id != last; id = reader_[id]) {
      // The operator before is in the group, so its cost is taken out. Infinities do not subtract.
      const NodeId next = reader_[id];
      if (hanging_[next] == kInfiniteCost) {
        cost += HangingWithout(next, id);
      } else {
        cost += hanging_[next] - best_[id];
      }
    }
    return cost;
  }

  Cost HangingWithout(NodeId id, NodeId excluded) {
    Cost sum;
    ForOperands({&id, 1}, [&](NodeId, NodeId from) {
      if (from != excluded && reader_[from] == id) sum += best_[from];
    });
    return sum;
  }

  // Chooses from the roots down, and lists the groups in the order of their last operators.
  void Collect(BriefGroups* groups) const {
    const std::vector<NodeId>& operators = in_.basis.operators;
    std::vector<uint8_t> covered(static_cast<size_t>(graph_.size()));
    std::vector<int> chosen;
    for (auto at = operators.rbegin(); at != operators.rend(); ++at) {
      const NodeId id = *at;
      if (in_.forest.taken[id] != 0 || chosen_[id] < 0 || covered[id] != 0) continue;
      chosen.push_back(id);
      ForNodes(candidates_[chosen_[id]], id, [&](NodeId in) { covered[in] = 1; });
    }
    groups->groups.reserve(chosen.size());
    groups->nodes.reserve(operators.size());
    for (auto at = chosen.rbegin(); at != chosen.rend(); ++at) {
      const Candidate& candidate = candidates_[chosen_[*at]];
      const auto& [time, key] = times_[candidate.time];
      const auto begin = static_cast<int>(groups->nodes.size());
      ForNodes(candidate, *at, [&](NodeId in) { groups->nodes.push_back(in); });
      groups->groups.push_back({.pattern = static_cast<int>(candidate.pattern),
                                .begin = begin,
                                .end = static_cast<int>(groups->nodes.size()),
                                .time = time,
                                .key = key});
    }
  }

  // Calls visit(operator) for the group's operators, ascending.
  template <class Visit>
  void ForNodes(const Candidate& group, NodeId last, const Visit& visit) const {
    if (const auto piece = PieceOf(group); !piece.empty()) {
      for (const NodeId id : piece) visit(id);
      return;
    }
    for (NodeId id = group.first; id != last; id = reader_[id]) visit(id);
    visit(last);
  }

  const CoverRequest& in_;
  const std::vector<NodeId>& reader_;
  const Graph& graph_;
  const GroupKeys keys_;
  std::vector<std::pair<size_t, TreeFinder>> finders_;
  std::vector<NodeId> path_;
  GroupKeys::Path prefix_;
  std::vector<LocalKey> prefix_keys_;
  std::vector<Candidate> candidates_;
  std::vector<NodeId> piece_nodes_;
  std::vector<List> endings_;                 // By last operator.
  absl::flat_hash_map<LocalKey, int> known_;  // Where a time is in times_.
  std::vector<TimedKey> times_;
  std::vector<Cost> best_;
  std::vector<Cost> hanging_;
  std::vector<double> end_ns_;
  std::vector<int> chosen_;  // In candidates_; -1: none.
  NodeMarks inside_;         // Of the piece that is looked at.
  NodeId stuck_ = -1;        // The first operator without a finite cost.
};

}  // namespace

CoverBasis::CoverBasis(const BriefSetting& setting, const GroupingOptions& options)
    : operators(OperatorsOf(setting.graph)),
      keys(KeysOfOperators(setting.graph, operators)),
      begin(kOpKindCount + 1) {
  const OpSet ops = OpsOf(setting.graph);
  const std::vector<GroupPattern>& all = setting.spec.patterns;
  const auto each_anchor = [&](const auto& visit) {
    for (size_t p = 0; p < all.size(); ++p) {
      if (!IsUsable(all[p], ops, options)) continue;
      for (const OpKind op : all[p].steps[0].ops) visit(static_cast<size_t>(op), p);
    }
  };
  each_anchor([&](size_t op, size_t) { ++begin[op + 1]; });
  for (size_t op = 0; op < kOpKindCount; ++op) begin[op + 1] += begin[op];
  begun_by.resize(begin.back());
  std::vector<size_t> next(begin.begin(), begin.end() - 1);
  each_anchor([&](size_t op, size_t pattern) { begun_by[next[op]++] = pattern; });
  for (const GroupPattern& pattern : all) {
    patterns.emplace_back();
    if (!IsUsable(pattern, ops, options)) continue;
    PatternFacts& facts = patterns.back();
    facts.frame = KeyOfFrame(
        {pattern.name, setting.policy.precision, options.cores, setting.policy.cold_cache});
    facts.shared_steps = SharedSteps(pattern);
    facts.nodes_max = options.grouped ? NodesMax(pattern) : 1;
    facts.takes_movements = std::ranges::any_of(pattern.steps, &PatternStep::takes_movements);
    facts.has_trees = options.grouped && options.pieces && TreeFinder::HasTrees(pattern);
  }
}

Status CoverByGroups(const CoverRequest& request, BriefGroups* groups) {
  return Cover(request).Run(groups);
}

Group MakeGroup(const Graph& graph, const NodeLayouts& layouts, std::vector<NodeId> nodes) {
  Group group;
  const auto is_inside = [&](NodeId id) { return std::ranges::binary_search(nodes, id); };
  for (const NodeId id : nodes) {
    const Node& node = graph.node(id);
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const Edge edge = node.inputs[k];
      if (is_inside(edge.node) || graph.is_constant(edge.node)) continue;
      const Port port{edge, layouts.Read(graph, id, k)};
      if (std::ranges::count(group.inputs, port) == 0) group.inputs.push_back(port);
    }
  }
  const auto add_outputs = [&](NodeId id) {
    for (size_t i = 0; i < graph.node(id).outputs.size(); ++i) {
      const Edge edge{id, static_cast<int32_t>(i)};
      const auto is_outside = [&](const Use& use) { return !is_inside(use.node); };
      if (!graph.is_output(edge) && !std::ranges::any_of(graph.uses(edge), is_outside)) continue;
      group.outputs.push_back({edge, layouts.Written(graph, edge)});
    }
  };
  add_outputs(nodes.back());
  for (size_t i = 0; i + 1 < nodes.size(); ++i) add_outputs(nodes[i]);
  group.nodes = std::move(nodes);
  return group;
}

}  // namespace ag
