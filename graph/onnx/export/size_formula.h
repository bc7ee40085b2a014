// A size that follows from other sizes, learnt from examples: the same size in several copies of
// one graph. Plain data and pure functions.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace ag {

// Size `axis` of a tensor.
struct SizePlace {
  Edge edge;
  int axis = 0;
  auto operator<=>(const SizePlace&) const = default;
};

// (sum of terms + plus) / divide, rounded down.
struct SizeFormula {
  struct Term {
    int64_t times = 1;
    std::vector<SizePlace> sizes;  // Multiplied.
    auto operator<=>(const Term&) const = default;
  };
  std::vector<Term> terms;
  int64_t plus = 0, divide = 1;

  bool is_constant() const { return terms.empty(); }
  auto operator<=>(const SizeFormula&) const = default;
};

// A size that formulas may use, and its value in each example.
struct KnownSize {
  SizePlace place;
  std::vector<int64_t> values;
};

// Returns the simplest formula that gives `values`, one for each example; nothing when there is
// none of the forms that models have: a constant, a multiple of one to three sizes, plus a
// constant, a sum of two, a part of one. Of equal forms the first of `known` is taken. Three
// examples with unlike sizes leave little to chance.
std::optional<SizeFormula> FindFormula(std::span<const int64_t> values,
                                       std::span<const KnownSize> known);

}  // namespace ag
