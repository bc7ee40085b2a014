// The rules found so far, and what follows from them. Reading is thread-safe.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "rules/generate/generalize.h"
#include "rules/generate/key.h"

namespace ag::generate {

// An equation that became rules: one direction or both.
struct KnownEquation {
  Graph left;
  Graph right;
  std::vector<FoundRule> rules;
  bool groups = false;     // It says that the grouping of an operator does not matter.
  bool redundant = false;  // The others imply it: neither asked nor written.
};

class KnownRules {
 public:
  void Add(KnownEquation equation);
  const std::vector<KnownEquation>& equations() const { return equations_; }
  std::vector<FoundRule*> rules();  // But the redundant ones.

  // Removes these rules, and what they taught about groupings.
  void Remove(const std::set<const FoundRule*>& rules);

  // Whether the rules, read as equations, join the two graphs in at most three steps; of several
  // roots, whether they lead from `left` to `right` in two. Sums, products and joins in another
  // grouping are the same once rules say so. `without`: an equation that is not asked.
  bool Imply(const Graph& left, const Graph& right, int without = -1) const;

  // Makes redundant what the others imply, the latest first.
  void Reduce();
  // Asks what was redundant again: without it what follows in four steps would look new.
  void Restore();

 private:
  struct Reached {
    std::string key;
    Graph graph;
  };
  std::vector<Reached> Neighbors(const Graph& graph, int without) const;
  void LearnGrouping();

  std::vector<KnownEquation> equations_;
  OpMask grouped_ = 0;  // Operators whose grouping does not matter, as the rules say.
};

}  // namespace ag::generate
