// Spreads an equation over two operands of a join (concat) to any number of operands, where it is
// the smallest case of such an equation: concat(relu(x), relu(y)) becomes concat(relu(x[i])...). Of
// two roots that differ only in their leaves, one is kept under "each i:". Pure functions.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "lab/generate/terms.h"

namespace ag::generate {

// One index i, which is 0 and 1 where the equation was found.
struct Spread {
  std::map<int, int> next;  // From the leaf with i = 0 to the leaf with i = 1.
  std::set<int> last;       // The leaves with i = 1.
  std::set<TermId> joins;   // Concats whose operands differ only in i.
  int member = 0;           // The i of terms outside joins.
  bool each = false;        // A term outside joins depends on i.

  bool Carries(int leaf) const { return next.contains(leaf) || last.contains(leaf); }
  // Returns the leaf with i = 0 for `leaf`, or `leaf` itself.
  int FirstOf(int leaf) const;
};

// Returns the index. nullopt: there is none, or its parts contradict each other.
std::optional<Spread> FindSpread(const TermTable& table, const std::vector<TermId>& source,
                                 const std::vector<TermId>& target);

}  // namespace ag::generate
