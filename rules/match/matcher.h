// Matching of one rule's source pattern with a graph, by backtracking over a list of goals.
// Functions are pure; a NodeIndex or Matcher belongs to one thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "rules/language/bindings.h"
#include "rules/language/pattern.h"

namespace ag {

// Returns true when a pattern's root may match at the node: not a leaf, not opaque, and not
// dependent on constants alone.
bool MayBeRoot(const Graph& graph, NodeId id);

// The nodes of a graph by operator, ascending: the candidates for a pattern's roots. Filled on
// first use. The graph must outlive it.
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

// Returns true for "each i: t" where t is not op(...)[i]. Then each root is matched alone, and
// families are formed afterwards.
inline bool IsByElement(const RulePattern& pattern) {
  return pattern.each >= 0 && pattern.sources[0].output_choice != OutputChoice::kEach;
}

// Returns every match of `pattern`, in a deterministic order. An "each" rule gives the match with
// the largest set of roots first, then up to `subsets_max` smaller ones. Guards hold in all of
// them.
std::vector<Bindings> FindMatches(const Graph& graph, const NodeIndex& index,
                                  const RulePattern& pattern, int subsets_max);

// One root of an "each i: t" rule, matched alone.
struct Element {
  const Bindings* bindings = nullptr;
  int position = -1;  // The output of op(...)[i] on which it depends; -1: none.
};

// Returns a text of everything on which the elements of one family agree: the values of all slots
// without an [i]; labels as operator and attributes. Equal texts mean agreement. Node n appears as
// names[n], or as n when there are no names.
std::string FamilyKey(const Graph& graph, const RulePattern& pattern, const Bindings& bindings,
                      std::span<const NodeId> names);

// Returns the matches that elements of one key, in order, make together: the largest one first,
// then up to `subsets_max` smaller ones. With op(...)[i] it is all outputs or none.
std::vector<Bindings> MakeFamily(const Graph& graph, const RulePattern& pattern,
                                 std::span<const Element> elements, int subsets_max);

// Matches the source side term by term; FindMatches and the family search use it.
//
// A goal is one thing left to do: match a term with an edge, compare an attribute, or find the next
// root. Goals form a list on the C++ stack; each Solve function takes the first goal, tries its
// ways one after the other, and continues with the rest. Always: trail_ lists the bindings in the
// order they were made, and each way is undone to its mark before the next one. A match is found
// when no goal is left and all guards hold. It ends because each term is matched once along a path
// (a spread term once per operand), which bounds the depth; the ways are the candidates for a root,
// the two orders of commutative operands, and the lengths of spreads. Of a bound tensor it reads
// only the type, the readers and the own node; rules/match/match_set.h relies on that.
class Matcher {
 public:
  // Called for each match; returns false to stop.
  using Found = bool (*)(void* context, const Bindings& bindings, int position);
  Matcher(const Graph& graph, const NodeIndex& index, const RulePattern& pattern, Found found,
          void* context);
  void Run();
  // Finds only matches with the first root at `root`. REQUIRES: MayBeRoot. May be called again.
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
  Bindings bindings_;
  int each_position_ = -1;                  // The output of op(...)[i] of the current element.
  std::vector<std::pair<int, int>> trail_;  // (slot, position), or (-1 - index, 0) for a count.
};

}  // namespace ag
