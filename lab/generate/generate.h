// The rule generator. It enumerates small graphs in several worlds (world.h), finds equal ones, and
// returns proved rules, without those that other rules imply. Thread-safe.
//
// Same options, same text: threads do not matter, as long as neither `stop` nor the limit of bytes
// ended a run early.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "lab/generate/enumerate.h"

namespace ag::generate {

struct GenerateOptions {
  int ops_max = 3;               // In [1, 4].
  std::vector<std::string> ops;  // Text names; empty: the operators of the default worlds.
  uint64_t seed = 1;
  int proofs = 12;            // Proofs of each rule that is written, with different seeds.
  int proof_instances = 200;  // Distinct ones in each proof; `rules verify` uses 200.
  int threads = 2;
  int64_t bytes_max = int64_t{6} << 30;  // For all worlds together.
  std::vector<ExtraOperator> extra;      // Also tried, in field worlds.
  std::vector<World> worlds;             // Empty: the default ones.
  // Thread-safe. True: prove and keep the rules found so far, and end.
  std::function<bool()> stop;
  std::function<void(const std::string& line)> progress;  // Called by one thread at a time.
};

struct GenerateReport {
  std::string text;  // The rules in the rule language, each proved by rules/verify/verify.
  int rules = 0;
  int64_t graphs = 0;
  int64_t equations = 0;  // Without those that only rename another.
  int64_t implied = 0;    // By rules that were found before.
  int64_t unproved = 0;   // Not expressible, or true only where they were found.
  int64_t open = 0;       // Not examined: the run was stopped.
  int64_t fallen = 0;     // Rules that the first proofs accepted and a later one refused.
  int64_t growing = 0;    // Directions left out: the target is the source with more around it.
  double enumerate_seconds = 0;
  double seconds = 0;
  bool complete = true;  // False: stopped, or out of bytes.
  // Equations with an extra operator, each checked on 200 fresh samples in exact arithmetic. They
  // are only reported: the rule language and Verify do not know the operator.
  std::vector<std::string> extra_equations;
};

// Runs the generator. kInvalidArgument: ops_max out of range, or an operator that no world has and
// that is not element-wise with one or two operands. kNotFound: an unknown operator.
StatusOr<GenerateReport> Generate(const GenerateOptions& options);

}  // namespace ag::generate
