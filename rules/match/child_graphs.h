// The cleaned-up graphs that single rewrites make of one graph. The hash of a child is known before
// it is made, so a child that was seen before costs little. Only the surroundings of the change are
// cleaned up. One thread at a time.
#pragma once

#include <vector>

#include "graph/patch.h"
#include "rules/match/rewrite.h"
#include "rules/match/rule_index.h"

namespace ag {

struct ChildGraph {
  Graph graph;
  StructureHash hash;         // HashOfStructure(graph).
  std::vector<NodeId> place;  // Place of each of the parent's nodes in it; -1: it is in it no more.
  // False: it was cleaned up as a whole, so it may differ from the parent everywhere.
  bool is_local = true;
};

struct ChildGraphsOptions {
  // CleanUp would change nothing in the parent except the order of commutative operands.
  bool parent_is_clean = false;
  int nodes_max = INT32_MAX;  // The most nodes of a child before clean-up.
};

class ChildGraphs {
 public:
  using Options = ChildGraphsOptions;
  // `clean_up` is the index of the clean-up rules. It must outlive this.
  ChildGraphs(const Graph& parent, const RuleIndex& clean_up, const Options& options = {});

  // Returns the hash of Apply(parent, rewrite), without the no-ops that this leaves in a clean
  // parent. kFailedPrecondition: as Apply.
  StatusOr<StructureHash> Try(const Rewrite& rewrite);

  // Returns the child of the last rewrite tried: CleanUp(Apply(parent, rewrite)), but commutative
  // operands that the rewrite does not touch keep the parent's order. kResourceExhausted: it has
  // more than nodes_max nodes. REQUIRES: the last Try returned OK.
  StatusOr<ChildGraph> Make();

 private:
  bool IsCleanUpNear() const;
  bool NeedsCleanUp(const Graph& child, const std::vector<NodeId>& place) const;

  const Graph parent_;
  const RuleIndex& clean_up_;
  const Options options_;
  GraphPatch patch_;
  StructureHash hash_;
};

}  // namespace ag
