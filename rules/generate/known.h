// The rules found so far, and what follows from them. Reading is thread-safe.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "rules/generate/generalize.h"
#include "rules/generate/key.h"

namespace ag::generate {

// Directions between the two sides of an equation.
struct Ways {
  bool forward = false;  // From left to right.
  bool back = false;

  bool any() const { return forward || back; }
  // Whether all that are asked for are among these; when none is, whether there is any.
  bool Answer(const Ways& asked) const {
    return any() && (forward || !asked.forward) && (back || !asked.back);
  }
};

// An equation that became rules: one direction or both.
struct KnownEquation {
  Graph left;
  Graph right;
  std::vector<FoundRule> rules;
  Ways asked;           // Directions that others must lead in for it to be redundant; none: either.
  Ways grows;           // Directions without a rule since it would say nothing and only grow.
  Ways implied;         // Directions without a rule since those before it lead there.
  bool groups = false;  // It says that the grouping of an operator does not matter.
  bool redundant = false;  // The others imply it: it takes no part and is not written.

  Ways ruled() const;  // The directions of the rules.
  // x - x + y => y has no way back: y does not say what x is.
  bool two_way() const;
};

class KnownRules {
 public:
  void Add(KnownEquation equation);
  const std::vector<KnownEquation>& equations() const { return equations_; }
  std::vector<FoundRule*> rules();  // But the redundant ones.

  // Removes these rules, and what they taught and implied.
  void Remove(const std::set<const FoundRule*>& rules);

  // In which directions the rules lead from one graph to the other: in at most three steps, some of
  // them against their arrow where their equation goes both ways; of several roots in two, along
  // their arrows. Sums, products and joins in another grouping are the same once rules say so.
  // Looks no further once it has an answer to what is `asked`. `without`: an equation that is left
  // out.
  Ways Imply(const Graph& left, const Graph& right, const Ways& asked, int without = -1) const;

  // Makes redundant what the others imply, the latest first.
  void Reduce();
  // Asks what was redundant again: without it what follows in four steps would look new.
  void Restore();

 private:
  struct Reached {
    std::string key;
    Graph graph;
    bool two_way;  // There is a step back.
  };
  std::vector<Reached> Neighbors(const Graph& graph, int without) const;
  bool Leads(const Graph& from, const Graph& to, int without) const;
  void LearnGrouping();

  std::vector<KnownEquation> equations_;
  OpMask grouped_ = 0;  // Operators whose grouping does not matter, as the rules say.
};

}  // namespace ag::generate
