// The rules found so far, and what they imply. Safe to share between threads for reading.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "lab/generate/generalize.h"
#include "lab/generate/key.h"

namespace ag::generate {

// The two directions of an equation.
struct Ways {
  bool forward = false;  // From left to right.
  bool back = false;

  bool any() const { return forward || back; }
  // Returns true when all directions in `asked` are here; when none is asked, when any is here.
  bool Answer(const Ways& asked) const {
    return any() && (forward || !asked.forward) && (back || !asked.back);
  }
};

// An equation that became one rule or two, one for each direction.
struct KnownEquation {
  Graph left;
  Graph right;
  std::vector<FoundRule> rules;
  // Directions in which others must lead to make it redundant; none: either.
  Ways asked;
  // Directions without a rule, because the target would only grow.
  Ways grows;
  Ways implied;            // Directions without a rule, because earlier rules lead there.
  bool groups = false;     // It says that an operator's grouping does not matter.
  bool redundant = false;  // The others imply it: it is not used and not written.

  Ways ruled() const;  // The directions of its rules.
  // Whether both directions are functions. x - x + y => y has no way back: y does not determine x.
  bool two_way() const;
};

class KnownRules {
 public:
  void Add(KnownEquation equation);
  const std::vector<KnownEquation>& equations() const { return equations_; }
  std::vector<FoundRule*> rules();  // Without the redundant ones.

  // Removes these rules and everything that depends on them.
  void Remove(const std::set<const FoundRule*>& rules);

  // Returns the directions in which the rules lead from one graph to the other. One root: at most
  // three steps, also against a rule's arrow when its equation is bidirectional. Several roots: two
  // steps, along the arrows. Graphs that differ only in a grouping count as equal once rules say
  // so. Stops when `asked` is answered. `without`: an equation to leave out.
  Ways Imply(const Graph& left, const Graph& right, const Ways& asked, int without = -1) const;

  // Marks equations that the others imply as redundant, the latest first.
  void Reduce();
  // Clears the redundant marks. Else equations that follow only in four steps would look new.
  void Restore();

 private:
  struct Reached {
    std::string key;
    Graph graph;
    bool two_way;  // There is also a step back.
  };
  std::vector<Reached> Neighbors(const Graph& graph, int without) const;
  bool Leads(const Graph& from, const Graph& to, int without) const;
  void LearnGrouping();

  std::vector<KnownEquation> equations_;
  OpMask grouped_;  // Operators whose grouping does not matter, by the rules.
};

}  // namespace ag::generate
