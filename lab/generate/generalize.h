// From an equation between concrete graphs to the most general true rule. Wordings are tried from
// general to special, each in all its ways: first without constraints, then with all of them, from
// which unnecessary ones are dropped. Thread-safe.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/mutex.h"
#include "lab/generate/key.h"
#include "lab/generate/phrase.h"
#include "lab/generate/terms.h"
#include "rules/language/rule_set.h"

namespace ag::generate {

struct FoundRule {
  std::string body;  // "[exact]: source => target if guard", without a name.
  std::string name;
  RuleSet rule;         // With this rule only.
  bool forward = true;  // From the left side of its equation to the right side.
  OpMask ops;           // Operators that a graph needs for a match.
  int instances = 0;    // In all proofs so far.
  int proofs = 0;
  std::string arithmetic;
};

// Verdicts by text. Many equations give the same text (another world, other attributes), and the
// verdict depends only on text and seed, so it is computed once. Thread-safe.
class Verdicts {
 public:
  std::optional<bool> Find(const std::string& text) const AG_EXCLUDES(mutex_);
  void Add(const std::string& text, bool verdict) AG_EXCLUDES(mutex_);

 private:
  mutable Mutex mutex_;
  std::map<std::string, bool> verdicts_ AG_GUARDED_BY(mutex_);
};

struct ProofOptions {
  uint64_t seed = 1;  // The seed of the first proof; the others derive from it.
  // Proofs, each with its own seed. A rule that was found has no author who understood it, and some
  // mistakes show in one of thousands of instances only.
  int rounds = 12;
  int instances = 200;            // In each proof; distinct.
  std::set<std::string> refused;  // Bodies that a later proof refused; not proposed again.
  // May be null. Both are for one seed. screened: whether a text held on a few instances. unproved:
  // bodies that were not proved; true: because of too few cases.
  Verdicts* screened = nullptr;
  Verdicts* unproved = nullptr;
};

// Returns the rule `source` => `target` after its first proofs by rules/verify/verify. nullopt: the
// language cannot express it, or no wording of it is true. Deterministic.
std::optional<FoundRule> Generalize(const TermTable& table, const std::vector<TermId>& source,
                                    const std::vector<TermId>& target,
                                    const ProofOptions& options = {});

// Runs the remaining proofs. Returns false: one of them refused the rule.
bool ProveAgain(const ProofOptions& options, FoundRule* rule);

// Returns the rule's name, made of its operators and a digest of the text.
std::string NameOf(const TermTable& table, const std::vector<TermId>& source,
                   const std::string& body);

// Returns true when `rule` rewrites the source into the target where the equation was found.
bool Rewrites(const RuleSet& rule, const Graph& source, const std::string& target_key);

}  // namespace ag::generate
