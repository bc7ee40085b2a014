// From an equation between concrete graphs to the most general rule that is true: wordings are
// tried from general to special, each in all its ways, first without a constraint, then with all of
// them, of which those are dropped that it does without.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/mutex.h"
#include "rules/generate/key.h"
#include "rules/generate/phrase.h"
#include "rules/generate/terms.h"
#include "rules/rule_set.h"

namespace ag::generate {

struct FoundRule {
  std::string body;  // "[exact]: source => target if guard", without a name.
  std::string name;
  RuleSet rule;         // The one rule.
  bool forward = true;  // From the left side of its equation to the right one.
  OpMask ops = 0;       // Operators that a graph must have for it to match.
  int instances = 0;    // Of the proofs so far.
  int proofs = 0;
  std::string arithmetic;
};

// What was said of a text. Many equations propose the same one (another world, other attributes),
// and the answer depends on the text and the seed alone: it is found once. Thread-safe.
class Verdicts {
 public:
  std::optional<bool> Find(const std::string& text) const AG_EXCLUDES(mutex_);
  void Add(const std::string& text, bool verdict) AG_EXCLUDES(mutex_);

 private:
  mutable Mutex mutex_;
  std::map<std::string, bool> verdicts_ AG_GUARDED_BY(mutex_);
};

struct ProofOptions {
  uint64_t seed = 1;    // Of the first proof; the others follow from it.
  int rounds = 12;      // Proofs, each with its own seed. A rule that somebody wrote was thought
                        // about, one that was found was not: some of what is wrong shows on one
                        // instance of thousands only.
  int instances = 200;  // Of each proof, distinct.
  std::set<std::string> refused;  // Bodies that a later proof refused: they are not proposed again.
  // May be null. Of one seed: whether a text held on a few instances; and bodies that were not
  // proved, true where cases were too few.
  Verdicts* screened = nullptr;
  Verdicts* unproved = nullptr;
};

// `source` => `target` as a rule that passed the first few proofs of rules/verify. nullopt: it
// cannot be said, or no wording of it is true. Deterministic.
std::optional<FoundRule> Generalize(const TermTable& table, const std::vector<TermId>& source,
                                    const std::vector<TermId>& target,
                                    const ProofOptions& options = {});

// The proofs that are still to do. False: one of them refused the rule.
bool ProveAgain(const ProofOptions& options, FoundRule* rule);

// The text of a rule; its name is made of the operators and a digest of the text.
std::string NameOf(const TermTable& table, const std::vector<TermId>& source,
                   const std::string& body);

// True when `rule` rewrites the source into the target where the equation was found.
bool Rewrites(const RuleSet& rule, const Graph& source, const std::string& target_key);

}  // namespace ag::generate
