// Enumeration of one world: every term of up to `ops_max` operators, smallest first, over the one
// representative of each class of equal terms (what holds of another member follows by replacing
// it), each evaluated exactly once in every shape assignment and fingerprinted. A term that
// falls into a class is compared with its representative in full, and the two are an equation.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "rules/generate/terms.h"

namespace ag::generate {

struct EnumerateOptions {
  int ops_max = 3;
  uint64_t seed = 1;
  int64_t bytes_max = int64_t{3} << 30;  // Of terms and values; beyond it the world ends early.
  std::span<const ExtraOperator> extra;  // Outlive the equations; field worlds only.
  std::function<bool()> stop;            // Asked now and then; true ends the enumeration.
  std::function<void(int64_t graphs)> progress;  // Graphs since the last call.
};

struct Enumeration {
  std::vector<Equation> equations;  // Without those that only rename another. Small ones first.
  int64_t graphs = 0;               // Terms evaluated.
  int64_t classes = 0;
  int64_t bytes = 0;     // Largest held, about.
  bool complete = true;  // False: stopped, or out of bytes.
};

Enumeration Enumerate(const Universe& universe, const EnumerateOptions& options);

}  // namespace ag::generate
