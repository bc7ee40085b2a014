#include "plan/fusion/tree_finder.h"

#include <algorithm>

#include "plan/spec/pattern_match.h"

namespace ag {
namespace {

// The longest path that hangs on a tree.
constexpr size_t kPathMax = 16;

}  // namespace

TreeFinder::TreeFinder(const CoverRequest& request, const GroupPattern& pattern)
    : in_(request),
      pattern_(pattern),
      nodes_max_(static_cast<size_t>(NodesMax(pattern))),
      to_branch_(request.graph.size(), -1),
      below_(request.graph.size(), 1),
      kept_(request.graph.size()),
      bytes_(request.graph.size(), -1),
      inside_(request.graph.size()),
      read_(request.graph.size()) {}

const std::vector<TreeFinder::Tree>& TreeFinder::At(NodeId root, RestFn rest) {
  std::vector<Tree>& trees = kept_[root];
  if (BeginMatch(pattern_, in_.graph, root) == 0) return trees;
  const Operators children = Children(root);
  for (const NodeId child : children) {
    below_[root] = std::min(below_[root] + below_[child], kSmallTree + 1);
    const int length = children.size() > 1 ? 0 : to_branch_[child] + 1;
    const bool is_near = length < static_cast<int>(nodes_max_);
    if ((children.size() > 1 || to_branch_[child] >= 0) && is_near) to_branch_[root] = length;
  }
  if (to_branch_[root] < 0) return trees;
  trees.push_back({{root}});
  for (const NodeId child : children) {
    if (to_branch_[child] >= 0) {
      Join(kept_[child], &trees);
    } else {
      Join(Paths(child), &trees);
    }
  }
  for (Tree& tree : trees) std::ranges::sort(tree.nodes);
  if (below_[root] > kSmallTree) KeepCheapest(rest, &trees);
  return trees;
}

// Returns the operators that hang on `id` and may be in one tree with it.
TreeFinder::Operators TreeFinder::Children(NodeId id) const {
  Operators children;
  const Node& node = in_.graph.node(id);
  for (const Edge operand : node.inputs) {
    const NodeId from = operand.node;
    const bool hangs = in_.forest.reader[from] == id && std::ranges::count(children, from) == 0 &&
                       BeginMatch(pattern_, in_.graph, from) != 0;
    if (!hangs || in_.graph.type(operand).shape != node.outputs[0].shape) continue;
    if (in_.forest.shared[from] != 0 && !pattern_.steps[0].shared) continue;
    children.push_back(from);
  }
  return children;
}

// Returns the paths that end at `id`, where no operator has two operands in a tree.
std::vector<TreeFinder::Tree> TreeFinder::Paths(NodeId id) const {
  std::vector<Tree> paths;
  absl::InlinedVector<NodeId, 16> nodes;
  while (nodes.size() + 1 < nodes_max_ && nodes.size() < kPathMax) {
    nodes.push_back(id);
    paths.push_back({nodes});
    const Operators children = Children(id);
    if (children.size() != 1) break;
    id = children[0];
  }
  return paths;
}

// Adds to `trees` each of them with each of the parts that fits.
void TreeFinder::Join(const std::vector<Tree>& parts, std::vector<Tree>* trees) const {
  const size_t before = trees->size();
  for (const Tree& part : parts) {
    for (size_t i = 0; i < before; ++i) {
      Tree joined = (*trees)[i];
      if (joined.nodes.size() + part.nodes.size() > nodes_max_) continue;
      joined.is_path = joined.nodes.size() == 1 && part.is_path;
      joined.nodes.insert(joined.nodes.end(), part.nodes.begin(), part.nodes.end());
      trees->push_back(std::move(joined));
    }
  }
}

// Returns the bytes of the operator's first output.
double TreeFinder::BytesOf(NodeId id) {
  if (bytes_[id] < 0) bytes_[id] = static_cast<double>(in_.graph.type({id, 0}).Bytes());
  return bytes_[id];
}

// Returns the time of launching the tree and moving what it reads and writes.
double TreeFinder::MovesNs(std::span<const NodeId> nodes) {
  inside_.Set(nodes);
  read_.Set({});
  absl::InlinedVector<Edge, 4> others;  // Outputs read that are not the first ones.
  double bytes = 0;
  for (const NodeId id : nodes) {
    for (const Edge operand : in_.graph.node(id).inputs) {
      if (inside_.Has(operand.node)) continue;
      if (operand.output == 0) {
        if (read_.Add(operand.node)) bytes += BytesOf(operand.node);
      } else if (std::ranges::count(others, operand) == 0) {
        others.push_back(operand);
        bytes += static_cast<double>(in_.graph.type(operand).Bytes());
      }
    }
    const Edge made{id, 0};
    const auto is_outside = [&](const Use& use) { return !inside_.Has(use.node); };
    if (in_.graph.is_output(made) || std::ranges::any_of(in_.graph.uses(made), is_outside)) {
      bytes += BytesOf(id);
    }
  }
  const double cache = in_.spec.cache_bytes_per_second;
  return in_.spec.launch_ns + bytes / (cache > 0 ? cache : in_.spec.bytes_per_second) * 1e9;
}

void TreeFinder::KeepCheapest(RestFn rest, std::vector<Tree>* trees) {
  if (trees->size() <= kTreesMax) return;
  std::vector<std::pair<Cost, size_t>> order;
  order.reserve(trees->size());
  for (const Tree& tree : *trees) {
    const Cost cost = rest(tree.nodes) + Cost{0, MovesNs(tree.nodes)};
    order.emplace_back(cost, order.size());
  }
  std::ranges::sort(order);
  std::vector<Tree> kept;
  kept.reserve(kTreesMax);
  for (size_t i = 0; i < kTreesMax; ++i) kept.push_back(std::move((*trees)[order[i].second]));
  *trees = std::move(kept);
}

}  // namespace ag
