// The trees of element-wise operators that a pattern takes into one group (the mark "<" of a
// repeated first step, docs/device-spec.md). One thread at a time.
#pragma once

#include <functional>
#include <vector>

#include "plan/fusion/cover.h"

namespace ag {

// The most trees that are kept of those that end at one operator.
inline constexpr size_t kTreesMax = 32;

class TreeFinder {
 public:
  struct Tree {
    std::vector<NodeId> nodes;  // Ascending; the last one is the root.
    bool is_path = true;        // No operator has two operands in the tree.
  };
  using CostFn = std::function<Cost(const std::vector<NodeId>& nodes)>;

  // Both must outlive it. REQUIRES: HasTrees(pattern).
  TreeFinder(const CoverRequest& request, const GroupPattern& pattern);

  static bool HasTrees(const GroupPattern& pattern) { return pattern.steps[0].is_tree; }
  const GroupPattern& pattern() const { return pattern_; }

  // Returns the trees with this root, the root alone among them: all connected parts of the forest
  // that the step takes, of at most NodesMax operators, while there are at most kTreesMax; else the
  // cheapest of these (`cost`: of a tree as one group, and of all that hangs on it), made of such
  // trees of the operators before. Nothing where no tree is more than a path. REQUIRES: it was
  // called for every operator before, in their order.
  const std::vector<Tree>& At(NodeId root, const CostFn& cost);

 private:
  std::vector<NodeId> Children(NodeId id) const;
  std::vector<Tree> Paths(NodeId id) const;
  void Join(const std::vector<Tree>& parts, std::vector<Tree>* trees) const;
  static void KeepCheapest(const CostFn& cost, std::vector<Tree>* trees);

  const CoverRequest& in_;
  const GroupPattern& pattern_;
  const size_t nodes_max_;
  // By operator: the length of the path down to one with two operands in its tree; -1: there is
  // none within nodes_max_.
  std::vector<int> to_branch_;
  std::vector<std::vector<Tree>> kept_;
};

}  // namespace ag
