// TASO's rules in our language, proved, with the weakest guards under which each is true. Pure
// functions.
#pragma once

#include <string>
#include <vector>

#include "lab/taso/format.h"

namespace ag {

struct TasoImportOptions {
  int instances = 200;  // In each proof.
  uint64_t seed = 1;
};

struct TasoImport {
  std::string rule;     // Its name in TASO's file.
  std::string line;     // "taso-12 [exact]: ..."; "": our language cannot express it.
  bool proved = false;  // False: it is left out for the reason in `why`.
  int guards = 0;
  std::string why;  // Noise, a form that our language lacks, or the counter-example.
};

// Returns the import of one rule. Tries guards by number, from none on, in all combinations, and
// takes the first that the verifier proves. Deterministic by options.seed. Does not try a rule that
// TasoNoiseOf refuses.
TasoImport ImportTasoRule(const TasoRule& rule, const TasoImportOptions& options = {});

// Returns the file: proved rules, each below TASO's own text; the others as comments with their
// reason. RuleSet::Parse loads it.
std::string FormatTasoImport(const std::vector<TasoRule>& rules,
                             const std::vector<TasoImport>& imports, std::string_view source);

}  // namespace ag
