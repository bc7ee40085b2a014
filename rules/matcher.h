// Matching one rule's source pattern against a graph, by backtracking over a list of goals.
#pragma once

#include <vector>

#include "rules/bindings.h"
#include "rules/pattern.h"

namespace ag {

// The nodes of a graph by operator, ascending: where a pattern's root may match.
class NodeIndex {
 public:
  explicit NodeIndex(const Graph& graph);
  const std::vector<NodeId>& Of(OpKind op) const { return nodes_[static_cast<size_t>(op)]; }
  const std::vector<NodeId>& All() const { return all_; }

 private:
  std::vector<std::vector<NodeId>> nodes_;  // Without nodes that depend on constants alone.
  std::vector<NodeId> all_;
};

// True for "each i: t" where t is not op(...)[i]: each root is matched alone, then families are
// made.
inline bool IsByElement(const RulePattern& pattern) {
  return pattern.each >= 0 && pattern.sources[0].output_choice != OutputChoice::kEach;
}

// Every match of `pattern`, in one deterministic order; for "each" rules with the maximal set of
// roots first and then up to `subsets_max` smaller ones. Guards hold in all of them.
std::vector<Rewrite::Bindings> FindMatches(const Graph& graph, const NodeIndex& index,
                                           const RulePattern& pattern, int subsets_max);

// The source side term by term; FindMatches and the family search are made of it.
class Matcher {
 public:
  // `found` is called for each match and returns false to stop.
  using Found = bool (*)(void* context, const Rewrite::Bindings& bindings, int position);
  Matcher(const Graph& graph, const NodeIndex& index, const RulePattern& pattern, Found found,
          void* context);
  void Run();

 private:
  struct Goal;
  struct Undo;
  bool Solve(const Goal* goals);
  bool SolveRoot(const Goal& goal);
  bool SolveTerm(const Goal& goal);
  bool SolveScalar(const Goal& goal);
  bool SolveOperator(const Goal& goal);
  bool SolveOperands(const Goal& goal, const Node& node);
  bool SolveSpreads(const Goal& goal, const Node& node, size_t operand, std::vector<int>* lengths,
                    size_t used);
  bool SolveChain(const Goal& goal, const std::vector<int>& lengths, bool swapped);
  bool SolveCheck(const Goal& goal);
  bool SolveGuards();
  bool Guarded(const Guard& guard);

  bool TryRoot(const Goal& goal, Edge edge);
  bool MatchOutput(const Goal& goal, int* position);
  bool MatchAttributes(const Goal& goal, const Node& node);
  const std::vector<NodeId>& Candidates(const Term& term, std::vector<NodeId>* storage) const;
  bool Bind(int slot, int position, const Value& value);
  bool BindCount(int index, int count);
  void Rewind(size_t mark);

  const Graph& graph_;
  const NodeIndex& index_;
  const RulePattern& pattern_;
  const bool by_element_;
  Found found_;
  void* context_;
  Rewrite::Bindings bindings_;
  int each_position_ = -1;  // Which output of op(...)[i] the element of an "each" rule hangs on.
  std::vector<std::pair<int, int>> trail_;  // (slot, position), or (-1 - index, 0) for a count.
};

}  // namespace ag
