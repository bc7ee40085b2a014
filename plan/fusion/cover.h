// The cheapest cover of a graph by groups: dynamic programming over the forest in which each
// operator hangs on its first reader. A group is a connected piece of one tree of it: a path, with
// what hangs on its operators where the pattern says so. Thread-safe.
#pragma once

#include <span>
#include <vector>

#include "plan/fusion/brief_groups.h"
#include "plan/fusion/grouping.h"

namespace ag {

// How the operators hang together.
struct CoverForest {
  // The operator that `id` may join in a group: the first that reads its only output, in the layout
  // in which it is written; -1: none.
  std::vector<NodeId> reader;
  // Whether the output has other uses as well. Then `id` joins its reader only where its step has
  // the mark ">".
  std::vector<uint8_t> shared;
  // Operators that are views: in no group, and readers of none.
  std::vector<uint8_t> taken;
};

// What a graph's covers share, whatever their layouts.
struct CoverBasis {
  CoverBasis(const BriefSetting& setting, const GroupingOptions& options);

  // Returns the patterns that begin with `op` and have operators in the graph for all their steps,
  // in the order of the spec.
  std::span<const size_t> BegunBy(OpKind op) const {
    const auto at = static_cast<size_t>(op);
    return std::span(begun_by).subspan(begin[at], begin[at + 1] - begin[at]);
  }

  struct PatternFacts {
    LocalKey frame;                // KeyOfFrame.
    uint32_t shared_steps = 0;     // SharedSteps.
    int nodes_max = 1;             // The most operators of a group.
    bool takes_movements = false;  // A step does.
    bool has_trees = false;        // Trees are tried (plan/fusion/tree_finder.h).
  };
  std::vector<NodeId> operators;       // OperatorsOf.
  std::vector<LocalKey> keys;          // KeysOfOperators.
  std::vector<PatternFacts> patterns;  // By position in the spec.
  // Positions in the spec: of operator `op` from begin[op] up to begin[op + 1].
  std::vector<size_t> begun_by, begin;
};

struct CoverRequest {
  const Graph& graph;
  const DeviceSpec& spec;
  const Policy& policy;
  const NodeLayouts& layouts;
  const CoverForest& forest;
  const CoverBasis& basis;
  GroupTimes& times;
  GroupingOptions options;
};

// Adds the groups by ascending last operator. kUnimplemented: an operator fits no group; the
// message names it.
Status CoverByGroups(const CoverRequest& request, BriefGroups* groups);

// Returns the group of `nodes`, ascending, with its ports, which depend only on nodes and layouts.
// The outputs of the last operator come first, then those of others that are read outside.
Group MakeGroup(const Graph& graph, const NodeLayouts& layouts, std::vector<NodeId> nodes);

// The most outputs of a group of several operators.
inline constexpr int kOutputsMax = 4;

}  // namespace ag
