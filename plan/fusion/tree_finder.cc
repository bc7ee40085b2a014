#include "plan/fusion/tree_finder.h"

#include <algorithm>

#include "plan/spec/pattern_match.h"

namespace ag {

TreeFinder::TreeFinder(const CoverRequest& request, const GroupPattern& pattern)
    : in_(request),
      pattern_(pattern),
      nodes_max_(static_cast<size_t>(NodesMax(pattern))),
      to_branch_(request.graph.size(), -1),
      kept_(request.graph.size()) {}

const std::vector<TreeFinder::Tree>& TreeFinder::At(NodeId root, const CostFn& cost) {
  std::vector<Tree>& trees = kept_[root];
  if (BeginMatch(pattern_, in_.graph, root) == 0) return trees;
  const std::vector<NodeId> children = Children(root);
  for (const NodeId child : children) {
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
  if (trees.size() > kTreesMax) KeepCheapest(cost, &trees);
  return trees;
}

// Returns the operators that hang on `id` and may be in one tree with it.
std::vector<NodeId> TreeFinder::Children(NodeId id) const {
  std::vector<NodeId> children;
  const Node& node = in_.graph.node(id);
  for (const Edge operand : node.inputs) {
    const NodeId from = operand.node;
    const bool hangs = in_.forest.reader[from] == id && std::ranges::count(children, from) == 0 &&
                       BeginMatch(pattern_, in_.graph, from) != 0;
    if (!hangs || in_.graph.type(operand).shape != node.outputs[0].shape) continue;
    if (in_.forest.shared[from] && !pattern_.steps[0].shared) continue;
    children.push_back(from);
  }
  return children;
}

// Returns the paths that end at `id`, where no operator has two operands in a tree.
std::vector<TreeFinder::Tree> TreeFinder::Paths(NodeId id) const {
  std::vector<Tree> paths;
  std::vector<NodeId> nodes;
  while (nodes.size() + 1 < nodes_max_ && paths.size() < kTreesMax) {
    nodes.push_back(id);
    paths.push_back({nodes});
    const std::vector<NodeId> children = Children(id);
    if (children.size() != 1) break;
    id = children[0];
  }
  return paths;
}

// Adds to `trees` each of them with each of the parts that fits.
void TreeFinder::Join(const std::vector<Tree>& parts, std::vector<Tree>* trees) const {
  const size_t before = trees->size();
  for (const Tree& part : parts) {
    for (size_t i = 0; i < before && trees->size() < kTreesMax * kTreesMax; ++i) {
      Tree joined = (*trees)[i];
      if (joined.nodes.size() + part.nodes.size() > nodes_max_) continue;
      joined.is_path = joined.nodes.size() == 1 && part.is_path;
      joined.nodes.insert(joined.nodes.end(), part.nodes.begin(), part.nodes.end());
      trees->push_back(std::move(joined));
    }
  }
}

void TreeFinder::KeepCheapest(const CostFn& cost, std::vector<Tree>* trees) {
  std::vector<std::pair<Cost, size_t>> order;
  order.reserve(trees->size());
  for (const Tree& tree : *trees) order.emplace_back(cost(tree.nodes), order.size());
  std::ranges::sort(order);
  std::vector<Tree> kept;
  for (size_t i = 0; i < kTreesMax; ++i) kept.push_back(std::move((*trees)[order[i].second]));
  *trees = std::move(kept);
}

}  // namespace ag
