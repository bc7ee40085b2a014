// The verbs of the lab: rules found by enumeration, TASO's rules, and random walks. Each prints
// everything and returns a process exit code (client/cli/flags.h). One thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/cli/context.h"

namespace ag {

// Of coverage and import: a file in TASO's format.
struct TasoFlags {
  std::string file;
  std::string output;  // import: the rules file to write.
  std::string rules;   // coverage: the rules; "": the built-in ones.
  int steps = 4;       // coverage: applications of our rules in a row.
  int instances = 200;
  uint64_t seed = 1;
};

struct GenerateFlags {
  std::string output;
  int ops_max = 3;
  std::vector<std::string> ops;  // Empty: the default ones.
  uint64_t seed = 1;
  int proofs = 12;  // Of each rule, with different seeds.
};

struct WalkFlags {
  std::string folder;
  int steps = 8;  // Rewrites of each model, one after another.
  uint64_t seed = 1;
};

int RunGenerate(Context& context, const GenerateFlags& flags);
int RunCoverage(Context& context, const TasoFlags& flags);
int RunImport(Context& context, const TasoFlags& flags);
// Rewrites each NAME.onnx of the folder at random into NAME.rewritten; a model that is refused gets
// NAME.refused with the reason. Leaves out what has either, so that a run goes on after a crash.
int RunWalk(Context& context, const WalkFlags& flags);

}  // namespace ag
