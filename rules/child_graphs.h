// The graphs that single rewrites make of one graph, cleaned up: named by a hash before they are
// made, so that those seen before cost little, and cleaned up around the change alone.
#pragma once

#include <optional>
#include <vector>

#include "graph/patch.h"
#include "rules/rewrite.h"
#include "rules/rule_index.h"

namespace ag {

struct ChildGraph {
  Graph graph;
  StructureHash hash;         // HashOfStructure(graph).
  std::vector<NodeId> place;  // Where the parent's nodes stand in it; empty when not known.
};

struct ChildGraphsOptions {
  // CleanUp changes nothing in the parent but the order of commutative operands.
  bool parent_is_clean = false;
  int nodes_max = INT32_MAX;  // Of a child before clean-up.
};

// Not thread-safe.
class ChildGraphs {
 public:
  using Options = ChildGraphsOptions;
  // Borrows `rules` and `clean_up`, the index of their clean-up rules.
  ChildGraphs(const Graph& parent, const RuleSet& rules, const RuleIndex& clean_up,
              const Options& options = {});

  // The hash of Apply(parent, rewrite). kFailedPrecondition as Apply.
  StatusOr<StructureHash> Try(const Rewrite& rewrite);

  // The child of the rewrite tried last: CleanUp(Apply(parent, rewrite)) but for the order of
  // commutative operands, which is the parent's where the rewrite does not touch them.
  // kResourceExhausted: larger than nodes_max. REQUIRES: Try went well.
  StatusOr<ChildGraph> Make();

 private:
  bool NeedsCleanUp(const Graph& child, const std::vector<NodeId>& place) const;

  const Graph parent_;
  const RuleSet& rules_;
  const RuleIndex& clean_up_;
  const Options options_;
  GraphPatch patch_;
  StructureHash hash_;
};

}  // namespace ag
