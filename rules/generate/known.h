// The rules found so far, and what follows from them. Reading is thread-safe.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "rules/generate/generalize.h"

namespace ag::generate {

// An equation that became rules: one direction or both.
struct KnownEquation {
  Graph left;
  Graph right;
  std::vector<FoundRule> rules;
};

class KnownRules {
 public:
  void Add(KnownEquation equation);
  const std::vector<KnownEquation>& equations() const { return equations_; }

  // Whether one rule says just this, word for word in one of the wordings: a quick look before
  // Imply.
  bool Says(const TermTable& table, const std::vector<TermId>& source,
            const std::vector<TermId>& target) const;

  // Whether the rules, read as equations, join the two graphs in at most three steps; of several
  // roots, whether they lead from `left` to `right` in two. `without`: an equation that is not
  // asked.
  bool Imply(const Graph& left, const Graph& right, int without = -1) const;

  // Removes what the others imply, the latest first.
  void Reduce();

 private:
  struct Reached {
    std::string key;
    Graph graph;
  };
  std::vector<Reached> Neighbors(const Graph& graph, int without) const;

  std::vector<KnownEquation> equations_;
  std::map<std::string, std::vector<std::vector<Constraint>>> said_;  // By plain equation.
};

// The operators of a graph, as bits of OpKind.
uint64_t OpsIn(const Graph& graph);

}  // namespace ag::generate
