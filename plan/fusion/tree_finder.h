// The trees of element-wise operators that a pattern takes into one group (the mark "<" of a
// repeated first step, docs/device-spec.md). One thread at a time.
#pragma once

#include <span>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "plan/fusion/cover.h"
#include "plan/fusion/node_marks.h"

namespace ag {

// While at most so many operators can be in a tree with one root, all its trees are tried,
inline constexpr int kSmallTree = 8;
// and beyond that only so many.
inline constexpr size_t kTreesMax = 8;

class TreeFinder {
 public:
  struct Tree {
    absl::InlinedVector<NodeId, 16> nodes;  // Ascending; the last one is the root.
    bool is_path = true;                    // No operator has two operands in the tree.
  };
  // The cost of all that hangs on a tree.
  using RestFn = absl::FunctionRef<Cost(std::span<const NodeId> nodes)>;

  // Both must outlive it. REQUIRES: HasTrees(pattern).
  TreeFinder(const CoverRequest& request, const GroupPattern& pattern);

  static bool HasTrees(const GroupPattern& pattern) { return pattern.steps[0].is_tree; }
  const GroupPattern& pattern() const { return pattern_; }

  // Returns the trees with this root, the root alone among them: all connected parts of the forest
  // that the step takes, of at most NodesMax operators; beyond kSmallTree the cheapest of these,
  // made of such trees of the operators before. A tree's own time counts as that of moving its
  // operands and results: its operations take the same time in other groups, and no measurement is
  // asked for. Nothing where no tree is more than a path. REQUIRES: it was called for every
  // operator before, in their order.
  const std::vector<Tree>& At(NodeId root, RestFn rest);

 private:
  using Operators = absl::InlinedVector<NodeId, 4>;

  Operators Children(NodeId id) const;
  std::vector<Tree> Paths(NodeId id) const;
  void Join(const std::vector<Tree>& parts, std::vector<Tree>* trees) const;
  void KeepCheapest(RestFn rest, std::vector<Tree>* trees);
  double MovesNs(std::span<const NodeId> nodes);
  double BytesOf(NodeId id);

  const CoverRequest& in_;
  const GroupPattern& pattern_;
  const size_t nodes_max_;
  // By operator: the length of the path down to one with two operands in its tree; -1: there is
  // none within nodes_max_.
  std::vector<int> to_branch_;
  std::vector<int> below_;  // By operator: how many can be in a tree with this root, itself too.
  std::vector<std::vector<Tree>> kept_;
  std::vector<double> bytes_;  // By operator: of its first output; below 0: not computed yet.
  NodeMarks inside_, read_;    // Of the tree whose moves are counted.
};

}  // namespace ag
