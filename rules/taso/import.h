// TASO's rules in our language, proved, with the weakest guards that make each true.
#pragma once

#include <string>
#include <vector>

#include "rules/taso/format.h"

namespace ag {

struct TasoImportOptions {
  int instances = 200;  // Of each proof.
  uint64_t seed = 1;
};

struct TasoImport {
  std::string rule;     // Its name in TASO's file.
  std::string line;     // "taso-12 [exact]: ..."; "" when our language cannot say it.
  bool proved = false;  // Otherwise it stays out, and `why` says why.
  int guards = 0;
  std::string why;  // Noise, what our language has no form for, or the counter-example.
};

// Guards are tried by number, from none on, in all combinations; the first that the verifier proves
// is taken. Deterministic by options.seed. A rule that TasoNoiseOf refuses is not tried.
TasoImport ImportTasoRule(const TasoRule& rule, const TasoImportOptions& options = {});

// The file: proved rules, each below TASO's own text, the others commented out with their reason.
// It loads with RuleSet::Parse.
std::string FormatTasoImport(const std::vector<TasoRule>& rules,
                             const std::vector<TasoImport>& imports, std::string_view source);

}  // namespace ag
