// Finds where an equation over joins of two is the smallest case of one over joins of any number:
// concat(relu(x), relu(y)) is concat(relu(x[i])...), and of two roots that differ in their leaves
// alone one stands for "each i:".
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "rules/generate/terms.h"

namespace ag::generate {

// One index i: 0 and 1 where the equation was found.
struct Spread {
  std::map<int, int> next;  // Leaves that carry [i]: the one of i = 0 to the one of i = 1.
  std::set<int> last;       // The latter.
  std::set<TermId> joins;   // Concats whose operands differ in i alone.
  int member = 0;           // The i of what stands outside of joins.
  bool each = false;        // Something outside of joins carries [i].

  bool Carries(int leaf) const { return next.contains(leaf) || last.contains(leaf); }
  // The leaf of i = 0 that `leaf` is a case of, or itself.
  int FirstOf(int leaf) const;
};

// nullopt: nothing to spread, or its parts contradict each other.
std::optional<Spread> FindSpread(const TermTable& table, const std::vector<TermId>& source,
                                 const std::vector<TermId>& target);

}  // namespace ag::generate
