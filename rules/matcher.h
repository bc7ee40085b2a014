// Matching one rule's source pattern against a graph, by backtracking over a list of goals.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "rules/bindings.h"
#include "rules/pattern.h"

namespace ag {

// Whether a pattern's root may match at the node: not at leaves, opaque nodes, and nodes that
// depend on constants alone.
bool MayBeRoot(const Graph& graph, NodeId id);

// The nodes of a graph by operator, ascending: where a pattern's root may match. Filled on first
// use; borrows the graph. Not thread-safe.
class NodeIndex {
 public:
  explicit NodeIndex(const Graph& graph) : graph_(graph) {}
  const std::vector<NodeId>& Of(OpKind op) const;
  const std::vector<NodeId>& All() const;

 private:
  void Fill() const;

  const Graph& graph_;
  mutable std::vector<std::vector<NodeId>> nodes_;
  mutable std::vector<NodeId> all_;
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

// One root of an "each i: t" rule, matched alone.
struct Element {
  const Rewrite::Bindings* bindings = nullptr;
  int position = -1;  // Which output of op(...)[i] it hangs on; -1 when the rule has no such term.
};

// What the elements of one family agree on, written so that equal texts mean agreement: the values
// of all slots without an [i], labels as operator and attributes. Node n is written as names[n], or
// as itself when there are no names.
std::string FamilyKey(const Graph& graph, const RulePattern& pattern,
                      const Rewrite::Bindings& bindings, std::span<const NodeId> names);

// The matches that elements of one key, in the order of their matches, make together: the maximal
// one first, then up to `subsets_max` smaller ones; with op(...)[i] all outputs or none.
std::vector<Rewrite::Bindings> MakeFamily(const Graph& graph, const RulePattern& pattern,
                                          std::span<const Element> elements, int subsets_max);

// The source side term by term; FindMatches and the family search are made of it. Of a tensor that
// is bound, nothing but its type, its readers and its own node may be asked: rules/match_set.h
// counts on it.
class Matcher {
 public:
  // `found` is called for each match and returns false to stop.
  using Found = bool (*)(void* context, const Rewrite::Bindings& bindings, int position);
  Matcher(const Graph& graph, const NodeIndex& index, const RulePattern& pattern, Found found,
          void* context);
  void Run();
  // Only matches with the first root at `root`. REQUIRES: MayBeRoot. May be called again.
  void RunAt(NodeId root);

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
