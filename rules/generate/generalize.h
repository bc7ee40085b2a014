// From an equation between concrete graphs to the most general rule that is true: wordings are
// tried from general to special, each first without a constraint, then with all of them, of which
// those are dropped that it does without.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "rules/generate/phrase.h"
#include "rules/generate/terms.h"
#include "rules/rule_set.h"

namespace ag::generate {

struct FoundRule {
  std::string body;  // "[exact]: source => target if guard", without a name.
  std::string name;
  std::string plain;             // Its equation without constraints: what instances say as well.
  std::vector<Constraint> kept;  // Its constraints.
  RuleSet rule;                  // The one rule.
  int instances = 0;
  std::string arithmetic;
  uint64_t ops = 0;  // Operators of the source's table term, as bits of OpKind; 0: any.
};

struct ProofOptions {
  uint64_t seed = 1;    // Of the first proof; the others follow from it.
  int rounds = 12;      // Proofs, each with its own seed. A rule that somebody wrote was thought
                        // about, one that was found was not: some of what is wrong shows on one
                        // instance of thousands only.
  int instances = 200;  // Of each proof, distinct.
};

// `source` => `target` as a rule that rules/verify proves. nullopt: it cannot be said, or no
// wording of it is true. Deterministic.
std::optional<FoundRule> Generalize(const TermTable& table, const std::vector<TermId>& source,
                                    const std::vector<TermId>& target,
                                    const ProofOptions& options = {});

// The text of a rule; its name is made of the operators and a digest of the text.
std::string NameOf(const TermTable& table, const std::vector<TermId>& source,
                   const std::string& body);

// True when `rule` rewrites the source into the target where the equation was found.
bool Rewrites(const RuleSet& rule, const Graph& source, const std::string& target_key);

// Equal for graphs with the same inputs that differ in the order of commutative operands alone.
// Constants of zeros are all alike.
std::string KeyOf(const Graph& graph);

}  // namespace ag::generate
