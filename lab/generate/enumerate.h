// Enumeration of one world: every term of up to `ops_max` operators, smallest first. Operands are
// the representatives of classes of equal terms only; a fact about another member follows by
// replacing it. Each term is evaluated exactly, once in every shape assignment, and fingerprinted.
// A term that falls into a class is compared with the class's representative in full; the two are
// an equation. Thread-safe.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "lab/generate/terms.h"

namespace ag::generate {

struct EnumerateOptions {
  int ops_max = 3;
  uint64_t seed = 1;
  // The limit for terms and values; beyond it the enumeration ends early.
  int64_t bytes_max = int64_t{3} << 30;
  std::span<const ExtraOperator> extra;  // Must outlive the equations; for field worlds only.
  std::function<bool()> stop;            // Called now and then; true ends the enumeration.
  std::function<void(int64_t graphs)> progress;  // The number of graphs since the last call.
};

struct Enumeration {
  // Small ones first, without those that only rename the leaves of another.
  std::vector<Equation> equations;
  int64_t graphs = 0;  // Terms evaluated.
  int64_t classes = 0;
  int64_t bytes = 0;     // The most that was held, about.
  bool complete = true;  // False: stopped, or out of bytes.
};

// Returns the equations of one world. Deterministic, unless `stop` or bytes_max ends it.
Enumeration Enumerate(const Universe& universe, const EnumerateOptions& options);

}  // namespace ag::generate
