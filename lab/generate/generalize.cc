#include "lab/generate/generalize.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/random.h"
#include "graph/reference/evaluate_as.h"
#include "graph/tensor.h"
#include "lab/generate/key.h"
#include "lab/generate/phrase.h"
#include "rules/match/rewrite.h"
#include "rules/sets/built_in_rules.h"
#include "rules/verify/instance.h"
#include "rules/verify/trial.h"
#include "rules/verify/verify.h"

namespace ag::generate {
namespace {

// A wrong wording seldom holds on so many instances; wordings that hold are proved by Verify.
constexpr int kScreenInstances = 16;
constexpr int kScreenSamples = 1000;
constexpr int kHopelessSamples = 150;  // The limit when no instance fits.
// A rule with few shapes (one tensor of rank 2, say) has fewer distinct instances than a proof
// needs. It is given up after this many samples.
constexpr int kProofSamples = 5000;
// When a class of instance comes up so seldom, the rule is given up; a proof would take minutes.
// `rules verify` samples six times as often and accepts the rules that are found here.
constexpr int kClassSamples = 10'000;
// Wordings of one equation that may be given up for this; later ones are seldom better.
constexpr int kScarceMax = 6;
// Proofs before a rule counts as found. Of a thousand rules that pass them a few fall later.
constexpr int kFirstProofs = 3;

// Whether a rule held on some instances: a quick check before the proof.
bool Screen(const RuleSet& set, uint64_t seed) {
  const Rule& rule = set.rules()[0];
  int instances = 0;
  for (int sample = 0; sample < kScreenSamples && instances < kScreenInstances; ++sample) {
    if (sample == kHopelessSamples && instances == 0) return false;
    const uint64_t sample_seed = seed * 0x9e3779b97f4a7c15ull + static_cast<uint64_t>(sample) + 1;
    const auto instance = SampleInstance(*rule.pattern, sample_seed, 2 + sample % 4);
    if (!instance.has_value() || instance->elements > 8000) continue;
    const Trial trial = TryRule(rule, instance->graph, {.seed = sample_seed});
    if (trial.refused()) return false;
    instances += trial.outcome == Trial::Outcome::kHolds;
  }
  return instances == kScreenInstances;
}

// ---- Non-finite numbers.

double SampleWild(Random& random) {
  switch (random.Below(12)) {
    case 0:
      return INFINITY;
    case 1:
      return -INFINITY;
    case 2:
      return NAN;
    case 3:
      return 0;
    default:
      return random.Normal();
  }
}

std::optional<std::vector<Array<double>>> RunWild(const Graph& graph, uint64_t seed) {
  Random random(seed);
  std::vector<Array<double>> inputs;
  for (const NodeId id : graph.inputs()) {
    Array<double> input(graph.type({id, 0}).shape);
    for (double& value : input.values) value = SampleWild(random);
    inputs.push_back(std::move(input));
  }
  auto outputs = EvaluateAs<double>(graph, inputs, [&](NodeId id) -> StatusOr<Array<double>> {
    const Node& node = graph.node(id);
    const Tensor tensor = Tensor::View(node.outputs[0], node.constant->inline_bytes, node.facts);
    return ArrayOf<double>(node.outputs[0].shape, tensor.ToDoubles());
  });
  if (!outputs.ok()) return std::nullopt;
  return *std::move(outputs);
}

// Whether one side is finite where the other is not, with Inf or NaN in the inputs.
bool DiffersOnNonFinite(const Graph& source, const Graph& target, uint64_t seed) {
  for (uint64_t sample = 0; sample < 60; ++sample) {
    const auto a = RunWild(source, seed + sample), b = RunWild(target, seed + sample);
    if (!a || !b) return false;
    for (size_t o = 0; o < a->size(); ++o) {
      for (size_t i = 0; i < (*a)[o].values.size(); ++i) {
        if (std::isfinite((*a)[o].values[i]) != std::isfinite((*b)[o].values[i])) return true;
      }
    }
  }
  return false;
}

VerifyReport ProofOf(const Rule& rule, const ProofOptions& options, int round) {
  return Verify(rule, {.instances_min = options.instances,
                       .seed = options.seed + 1000 * static_cast<uint64_t>(round),
                       .class_samples_max = kClassSamples,
                       .scarce_samples_max = kProofSamples,
                       .explain = false});
}

// ---- Wordings and constraints.

// Tries wordings from general to special and returns the first rule that is proved. It ends because
// wordings, ways and constraints are finite lists; tried_ keeps a text from coming twice, and after
// kScarceMax wordings without enough cases it stops.
class Generalizer {
 public:
  Generalizer(const TermTable& table, const std::vector<TermId>& source,
              const std::vector<TermId>& target, const ProofOptions& options)
      : table_(table), source_(source), target_(target), options_(options) {}

  std::optional<FoundRule> Run() {
    const StatusOr<Graph> before = GraphOf(table_, source_, 0);
    const StatusOr<Graph> after = GraphOf(table_, target_, 0);
    if (!before.ok() || !after.ok()) return std::nullopt;
    key_ = KeyOf(*after);
    before_ = &*before;
    wild_ = DiffersOnNonFinite(*before, *after, options_.seed);
    for (const Wording& wording : Wordings()) {
      if (scarce_ >= kScarceMax) break;
      std::vector<Phrase> phrases = Say(table_, source_, target_, wording);
      std::erase_if(phrases, [&](const Phrase& p) { return !tried_.insert(p.equation()).second; });
      for (const Phrase& phrase : phrases) {
        if (auto found = TryPlain(phrase)) return found;
      }
      for (const Phrase& phrase : phrases) {
        if (auto found = TryConstrained(phrase)) return found;
      }
    }
    return std::nullopt;
  }

 private:
  std::optional<FoundRule> TryPlain(const Phrase& phrase) {
    return Holds(phrase, {}) ? Prove(phrase, {}) : std::nullopt;
  }

  std::optional<FoundRule> TryConstrained(const Phrase& phrase) {
    const std::vector<Constraint>& all = phrase.constraints;
    if (all.empty() || !Holds(phrase, all)) return std::nullopt;
    // One guard is better than several, so the weakest single guard that is enough comes first.
    // Attribute values are not tried alone: they only make mistakes rare.
    for (auto constraint = all.rbegin(); constraint != all.rend(); ++constraint) {
      if (!constraint->label.empty() || !Holds(phrase, {*constraint})) continue;
      if (auto found = ProveGuarded(phrase, {*constraint})) return found;
      break;
    }
    std::vector<Constraint> kept = all;
    for (const Constraint& constraint : all) {
      std::vector<Constraint> fewer;
      for (const Constraint& other : kept) {
        if (!(other == constraint)) fewer.push_back(other);
      }
      if (Holds(phrase, fewer)) kept = std::move(fewer);
    }
    return ProveGuarded(phrase, kept);
  }

  // Proves with these constraints, or with all same_shape constraints in addition: without these
  // the rule may allow a broadcast that never comes up.
  std::optional<FoundRule> ProveGuarded(const Phrase& phrase, std::vector<Constraint> kept) {
    if (auto found = Prove(phrase, kept)) return found;
    const size_t before = kept.size();
    for (const Constraint& constraint : phrase.constraints) {
      const bool known = std::find(kept.begin(), kept.end(), constraint) != kept.end();
      if (!known && constraint.text.starts_with("same_shape(")) kept.push_back(constraint);
    }
    if (kept.size() > before && Holds(phrase, kept)) {
      if (auto found = Prove(phrase, kept)) return found;
    }
    return std::nullopt;
  }

  // Returns the parsed rule with these constraints. nullopt: it does not parse.
  std::optional<RuleSet> Parsed(const Phrase& phrase, const std::vector<Constraint>& kept,
                                std::string_view rule_class, std::string* body = nullptr) const {
    const std::string text = fmt::format("[{}]: {}", rule_class, phrase.With(kept));
    if (body != nullptr) *body = text;
    const std::string name = body != nullptr ? NameOf(table_, source_, text) : "candidate";
    auto parsed = RuleSet::Parse(name + " " + text, "generated");
    if (!parsed.ok()) return std::nullopt;
    return *std::move(parsed);
  }

  // Whether the rule holds where the equation was found, and on some instances.
  bool Holds(const Phrase& phrase, const std::vector<Constraint>& kept) const {
    const auto rule = Parsed(phrase, kept, "rounding");
    if (!rule) return false;
    // A single root of an "each" family cannot be rewritten alone, so Rewrites does not apply.
    const bool alone =
        source_.size() == 1 && kept.empty() && phrase.source.starts_with("each i: unary.");
    if (!Rewrites(*rule, *before_, key_) && !alone) return false;
    return ScreenOnce(*rule, phrase.With(kept));
  }

  // Screens a text once. The class does not matter: the question is whether the sides agree.
  bool ScreenOnce(const RuleSet& rule, const std::string& text) const {
    if (options_.screened == nullptr) return Screen(rule, options_.seed);
    if (const auto known = options_.screened->Find(text)) return *known;
    const bool holds = Screen(rule, options_.seed);
    options_.screened->Add(text, holds);
    return holds;
  }

  std::optional<FoundRule> Prove(const Phrase& phrase, const std::vector<Constraint>& kept) {
    const bool wild = wild_ || phrase.zeros;
    // The number of cases depends on the source and the guards, not on the target.
    Phrase cases = phrase;
    cases.target.clear();
    const std::string cases_text = cases.With(kept);
    if (without_cases_.contains(cases_text)) return std::nullopt;
    for (const char* rule_class : {"exact", "rounding"}) {
      FoundRule found;
      const char* said = wild ? "finite" : rule_class;
      auto rule = Parsed(phrase, kept, said, &found.body);
      if (!rule || options_.refused.contains(found.body)) return std::nullopt;
      if (!wild && std::string_view(said) == "exact" && !ScreenOnce(*rule, found.body)) continue;
      const auto known =
          options_.unproved != nullptr ? options_.unproved->Find(found.body) : std::nullopt;
      if (known && *known) return GiveUp(cases_text);
      if (known) continue;
      found.rule = *std::move(rule);
      const VerifyReport report = FirstProofs(&found);
      if (!report.proved && options_.unproved != nullptr) {
        options_.unproved->Add(found.body, report.too_few_cases);
      }
      if (report.too_few_cases) return GiveUp(cases_text);
      if (!report.proved) continue;
      found.name = found.rule.rules()[0].name;
      found.ops = OpsIn(*found.rule.rules()[0].pattern);
      found.arithmetic = report.arithmetic;
      return found;
    }
    return std::nullopt;
  }

  // The other class has as few cases.
  std::nullopt_t GiveUp(const std::string& cases_text) {
    ++scarce_;
    without_cases_.insert(cases_text);
    return std::nullopt;
  }

  // Returns the first report that refuses, or the last one.
  VerifyReport FirstProofs(FoundRule* found) const {
    VerifyReport report;
    while (found->proofs < std::min(options_.rounds, kFirstProofs)) {
      report = ProofOf(found->rule.rules()[0], options_, found->proofs++);
      found->instances += report.instances;
      if (!report.proved) break;
    }
    return report;
  }

  const TermTable& table_;
  const std::vector<TermId>& source_;
  const std::vector<TermId>& target_;
  const ProofOptions& options_;
  const Graph* before_ = nullptr;
  std::string key_;
  bool wild_ = false;
  std::set<std::string> tried_;
  std::set<std::string> without_cases_;  // Sources with guards that had too few cases.
  int scarce_ = 0;                       // Wordings given up because of too few instances.
};

}  // namespace

std::optional<bool> Verdicts::Find(const std::string& text) const {
  const MutexLock lock(mutex_);
  const auto found = verdicts_.find(text);
  return found == verdicts_.end() ? std::nullopt : std::optional(found->second);
}

void Verdicts::Add(const std::string& text, bool verdict) {
  const MutexLock lock(mutex_);
  verdicts_.emplace(text, verdict);
}

bool Rewrites(const RuleSet& rule, const Graph& source, const std::string& target_key) {
  for (const Rewrite& rewrite : FindRewrites(source, rule, 2)) {
    const StatusOr<Graph> after = Apply(source, rewrite);
    if (after.ok() && KeyOf(*after) == target_key) return true;
  }
  return false;
}

bool ProveAgain(const ProofOptions& options, FoundRule* rule) {
  for (; rule->proofs < options.rounds; ++rule->proofs) {
    const VerifyReport report = ProofOf(rule->rule.rules()[0], options, rule->proofs);
    if (!report.proved) return false;
    rule->instances += report.instances;
  }
  return true;
}

std::string NameOf(const TermTable& table, const std::vector<TermId>& source,
                   const std::string& body) {
  const Term& root = table.term(source[0]);
  std::string name = root.call < 0 ? "leaf" : Info(table.call(root).op).text_name;
  std::replace(name.begin(), name.end(), '_', '-');
  return fmt::format("found-{}-{}", name, Sha256(body).Hex().substr(0, 8));
}

std::optional<FoundRule> Generalize(const TermTable& table, const std::vector<TermId>& source,
                                    const std::vector<TermId>& target,
                                    const ProofOptions& options) {
  return Generalizer(table, source, target, options).Run();
}

}  // namespace ag::generate
