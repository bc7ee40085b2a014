#include "lab/generate/generate.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <span>
#include <thread>

#include "base/text.h"
#include "lab/generate/extra.h"
#include "lab/generate/known.h"
#include "lab/generate/phrase.h"

namespace ag::generate {
namespace {

// Equations that are checked together for being implied by known rules.
constexpr size_t kBatch = 64;
// Equations that become rules together. They are not pruned by one another before the proof, and
// neighbors are often alike, so a larger number wastes work.
constexpr size_t kTogether = 2;
// Passes over all equations. A later pass examines what was implied by rules that fell in the one
// before.
constexpr int kPassesMax = 4;
constexpr size_t kReport = 1024;  // Equations between two progress lines.

using SteadyClock = std::chrono::steady_clock;

double SecondsSince(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

// Calls work(i) once for each i below `count`, from `threads` threads.
template <class Work>
void InParallel(int threads, size_t count, const Work& work) {
  std::atomic<size_t> next = 0;
  const auto run = [&] {
    for (size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back(run);
  run();
  for (std::thread& other : others) other.join();
}

// Whether element-wise operators that no default world has are added to this world.
bool TakesAnyElementwise(std::string_view world) {
  return world == "pointwise" || world == "layout";
}

// The whole run: enumerate all worlds, then passes over the equations, small ones first. A pass
// leaves out equations that known rules imply, generalizes the others, removes redundant rules and
// proves the rest; equations implied by a rule that fell are open in the next pass. Each later pass
// begins with more refused bodies, and there are at most kPassesMax. Threads only compute
// independent items of a batch, and results are taken in the order of equations, so the text does
// not depend on threads.
class Generator {
 public:
  explicit Generator(const GenerateOptions& options)
      : options_(options), start_(SteadyClock::now()) {}

  StatusOr<GenerateReport> Run() {
    AG_TRY(ReadWorlds());
    EnumerateAll();
    report_.enumerate_seconds = SecondsSince(start_);
    Say(fmt::format(
        "{} graphs in {:.1f} s ({:.0f}/s), {} equations", report_.graphs, report_.enumerate_seconds,
        static_cast<double>(report_.graphs) / report_.enumerate_seconds, equations_.size()));
    report_.equations = static_cast<int64_t>(equations_.size());
    fates_.assign(equations_.size(), Fate::kOpen);
    proving_ = {.seed = options_.seed,
                .rounds = options_.proofs,
                .instances = options_.proof_instances,
                .refused = {},
                .screened = &screened_,
                .unproved = &unproved_};
    // Equations implied by a rule that falls are open again.
    for (int pass = 0; pass < kPassesMax; ++pass) {
      known_.Restore();
      LookAtAll();
      known_.Reduce();
      if (ProveAll() || !report_.complete) break;
    }
    Count();
    Write();
    report_.seconds = SecondsSince(start_);
    return std::move(report_);
  }

 private:
  enum class Fate : uint8_t { kOpen, kRule, kImplied, kNeither };

  struct Candidate {
    bool implied = false;
    int growing = 0;  // Number of directions.
    std::optional<KnownEquation> found;
  };

  // ---- Worlds.

  Status ReadWorlds() {
    if (options_.ops_max < 1 || options_.ops_max > kOpsMax) {
      return Err(StatusCode::kInvalidArgument, "max-ops: expected 1 to {}, got {}", kOpsMax,
                 options_.ops_max);
    }
    std::vector<World> worlds = options_.worlds;
    if (worlds.empty()) worlds.assign(DefaultWorlds().begin(), DefaultWorlds().end());
    std::set<OpKind> wanted;
    for (const std::string& name : options_.ops) {
      AG_LET(const OpKind op, OpKindFromText(name));
      wanted.insert(op);
    }
    std::set<OpKind> placed;
    for (const World& world : worlds) {
      AG_LET(Universe universe, ReadWorld(world));
      if (!wanted.empty()) Choose(wanted, &universe);
      placed.insert(universe.ops.begin(), universe.ops.end());
      if (!universe.ops.empty() || !options_.extra.empty()) universes_.push_back(universe);
    }
    for (const OpKind op : wanted) {
      if (placed.contains(op)) continue;
      return Err(StatusCode::kInvalidArgument, "operator {}: the generator has no operands for it",
                 Info(op).text_name);
    }
    return OkStatus();
  }

  static void Choose(const std::set<OpKind>& wanted, Universe* universe) {
    const std::vector<std::string> defaults = DefaultOps();
    std::vector<OpKind> ops;
    for (const OpKind op : universe->ops) {
      if (wanted.contains(op)) ops.push_back(op);
    }
    for (const OpKind op : wanted) {
      const bool known =
          std::find(defaults.begin(), defaults.end(), Info(op).text_name) != defaults.end();
      const bool fits = Has(op, kElementwise) && Info(op).arity_max <= 2;
      if (!known && fits && TakesAnyElementwise(universe->name)) ops.push_back(op);
    }
    universe->ops = std::move(ops);
  }

  void EnumerateAll() {
    std::vector<Enumeration> results(universes_.size());
    std::atomic<int64_t> graphs = 0;
    InParallel(options_.threads, universes_.size(), [&](size_t i) {
      results[i] = Enumerate(universes_[i],
                             {.ops_max = options_.ops_max,
                              .seed = options_.seed,
                              .bytes_max = options_.bytes_max / std::max(options_.threads, 1),
                              .extra = options_.extra,
                              .stop = options_.stop,
                              .progress = [&](int64_t more) { ReportGraphs(graphs += more); }});
      Say(fmt::format("world {}: {} graphs, {} classes, {} equations", universes_[i].name,
                      results[i].graphs, results[i].classes, results[i].equations.size()));
    });
    for (Enumeration& result : results) {
      report_.graphs += result.graphs;
      report_.complete = report_.complete && result.complete;
      for (Equation& equation : result.equations) equations_.push_back(std::move(equation));
    }
    std::stable_sort(equations_.begin(), equations_.end(),
                     [](const Equation& a, const Equation& b) { return RankOf(a) < RankOf(b); });
  }

  // Small equations first; before all others those with a side that reads each leaf once, because
  // the others are mostly such equations with two leaves made one.
  static std::pair<bool, int> RankOf(const Equation& e) {
    const bool linear = IsLinear(*e.table, e.left) || IsLinear(*e.table, e.right);
    return {!linear, OpsOf(*e.table, e.left) + OpsOf(*e.table, e.right)};
  }

  void ReportGraphs(int64_t graphs) {
    if (graphs / 100000 == reported_.exchange(graphs / 100000)) return;
    Say(fmt::format("{} graphs, {:.0f}/s", graphs,
                    static_cast<double>(graphs) / SecondsSince(start_)));
  }

  // ---- Equations to rules.

  void LookAtAll() {
    std::vector<size_t> open;
    for (size_t i = 0; i < fates_.size(); ++i) {
      if (fates_[i] != Fate::kNeither) open.push_back(i);
    }
    for (size_t begin = 0; begin < open.size() && !Stopped(); begin += kBatch) {
      const size_t count = std::min(kBatch, open.size() - begin);
      DoBatch({open.data() + begin, count});
      if (begin / kReport == (begin + count) / kReport && begin + count != open.size()) continue;
      Say(fmt::format("{} of {} equations: {} became rules, {:.0f} s", begin + count, open.size(),
                      known_.equations().size(), SecondsSince(start_)));
    }
  }

  void DoBatch(std::span<const size_t> batch) {
    std::vector<uint8_t> implied(batch.size());
    InParallel(options_.threads, batch.size(),
               [&](size_t i) { implied[i] = IsImplied(equations_[batch[i]]); });
    std::vector<size_t> left;
    for (size_t i = 0; i < batch.size(); ++i) {
      if (implied[i]) fates_[batch[i]] = Fate::kImplied;
      if (!implied[i]) left.push_back(batch[i]);
    }
    for (size_t begin = 0; begin < left.size() && !Stopped(); begin += kTogether) {
      DoTogether({left.data() + begin, std::min(kTogether, left.size() - begin)});
    }
  }

  void DoTogether(std::span<const size_t> batch) {
    std::vector<Candidate> candidates(batch.size());
    InParallel(options_.threads, candidates.size(),
               [&](size_t i) { candidates[i] = Look(equations_[batch[i]]); });
    bool added = false;
    for (size_t i = 0; i < candidates.size(); ++i) {
      Candidate& candidate = candidates[i];
      Fate& fate = fates_[batch[i]];
      if (fate == Fate::kOpen) report_.growing += candidate.growing;
      if (!candidate.implied && candidate.found.has_value() && added) {
        candidate.implied = Follows(*candidate.found);
      }
      fate = candidate.implied ? Fate::kImplied : Fate::kNeither;
      if (candidate.implied || !candidate.found.has_value()) continue;
      fate = Fate::kRule;
      known_.Add(*std::move(candidate.found));
      added = true;
    }
  }

  // Runs the remaining proofs of the remaining rules. Returns false: a rule fell.
  bool ProveAll() {
    const std::vector<FoundRule*> rules = known_.rules();
    std::vector<uint8_t> proved(rules.size());
    Say(fmt::format("{} rules to prove {} times, {:.0f} s", rules.size(), options_.proofs,
                    SecondsSince(start_)));
    InParallel(options_.threads, rules.size(),
               [&](size_t i) { proved[i] = ProveAgain(proving_, rules[i]); });
    std::set<const FoundRule*> fallen;
    for (size_t i = 0; i < rules.size(); ++i) {
      if (proved[i]) continue;
      fallen.insert(rules[i]);
      proving_.refused.insert(rules[i]->body);
    }
    known_.Remove(fallen);
    report_.fallen += static_cast<int64_t>(fallen.size());
    return fallen.empty();
  }

  void Count() {
    report_.implied = std::count(fates_.begin(), fates_.end(), Fate::kImplied);
    report_.unproved = std::count(fates_.begin(), fates_.end(), Fate::kNeither);
    report_.open = std::count(fates_.begin(), fates_.end(), Fate::kOpen);
  }

  bool IsImplied(const Equation& equation) const {
    if (HasExtra(equation)) return false;
    const StatusOr<Graph> left = GraphOf(*equation.table, equation.left, 0);
    const StatusOr<Graph> right = GraphOf(*equation.table, equation.right, 0);
    const Ways asked = WaysAsked(equation);
    return left.ok() && right.ok() && known_.Imply(*left, *right, asked).Answer(asked);
  }
  bool Follows(const KnownEquation& found) const {
    return known_.Imply(found.left, found.right, found.asked).Answer(found.asked);
  }

  // Returns the directions that must be implied. A direction counts when its source reads each leaf
  // once; other ones are mostly such with two leaves made one. A join of several roots counts in
  // its direction.
  static Ways WaysAsked(const Equation& equation) {
    const TermTable& table = *equation.table;
    if (equation.left.size() > 1) return {.forward = true};
    const auto asked = [&](const auto& source, const auto& target) {
      const uint32_t bound = VariablesOf(table, source), read = VariablesOf(table, target);
      return IsLinear(table, source) && (read & ~bound) == 0 && !OnlyGrows(table, source, target);
    };
    return {.forward = asked(equation.left, equation.right),
            .back = asked(equation.right, equation.left)};
  }

  Candidate Look(const Equation& equation) {
    const TermTable& table = *equation.table;
    if (HasExtra(equation)) {
      TellExtra(equation);
      return {};
    }
    StatusOr<Graph> left = GraphOf(table, equation.left, 0);
    StatusOr<Graph> right = GraphOf(table, equation.right, 0);
    if (!left.ok() || !right.ok()) return {};
    const Ways asked = WaysAsked(equation);
    const Ways implied = known_.Imply(*left, *right, asked);
    if (implied.Answer(asked)) return {.implied = true};
    KnownEquation found{
        .left = *std::move(left), .right = *std::move(right), .asked = asked, .implied = implied};
    int growing = 0;
    // The right side is larger or later, so simplifying rules come first.
    for (const bool forward : {false, true}) {
      const auto& source = forward ? equation.left : equation.right;
      const auto& target = forward ? equation.right : equation.left;
      if (OnlyGrows(table, source, target)) {
        ++growing;
        (forward ? found.grows.forward : found.grows.back) = SaysAll(table, source, target);
        continue;
      }
      // A join of several roots leads one way; the way back may follow from other rules.
      if (source.size() > 1 && !forward) {
        found.implied.back = known_.Imply(found.left, found.right, {.back = true}).back;
      }
      if (forward ? found.implied.forward : found.implied.back) continue;
      auto rule = Generalize(table, source, target, proving_);
      if (!rule) continue;
      rule->forward = forward;
      found.rules.push_back(*std::move(rule));
    }
    if (found.rules.empty()) return {.implied = found.implied.any(), .growing = growing};
    return {.growing = growing, .found = std::move(found)};
  }

  // Whether the target is only the source with more around it, as relu(x) => relu(relu(x)): it
  // matches again and never ends. A rule with several roots is never counted as such.
  static bool OnlyGrows(const TermTable& table, const std::vector<TermId>& source,
                        const std::vector<TermId>& target) {
    return source.size() == 1 && target.size() == 1 &&
           OpsOf(table, target) > OpsOf(table, source) && IsEmbedded(table, source[0], target[0]);
  }

  // ---- Extra operators.

  static bool HasExtra(const Equation& equation) {
    const auto has = [&](const std::vector<TermId>& roots) {
      return std::any_of(roots.begin(), roots.end(),
                         [&](TermId root) { return generate::HasExtra(*equation.table, root); });
    };
    return has(equation.left) || has(equation.right);
  }
  void TellExtra(const Equation& equation) {
    if (equation.left.size() != 1 ||
        !HoldsAgain(*equation.table, equation.right[0], equation.left[0], options_.seed)) {
      return;
    }
    const std::string text = SayPlainly(*equation.table, equation.right[0], equation.left[0]);
    const std::lock_guard lock(mutex_);
    report_.extra_equations.push_back(text);
  }

  // ---- The answer.

  void Write() {
    std::string text = fmt::format(
        "# Found by `autograph-lab generate --max-ops {} --seed {}`: {} graphs, {} equations.\n"
        "# Each rule was proved by rules/verify/verify with {} seeds.\n"
        "# Operators: {}.\n",
        options_.ops_max, options_.seed, report_.graphs, report_.equations, options_.proofs,
        Join(options_.ops.empty() ? DefaultOps() : options_.ops, " "));
    std::set<std::string> names;
    for (const KnownEquation& equation : known_.equations()) {
      if (equation.redundant) continue;
      for (const FoundRule& rule : equation.rules) {
        if (!names.insert(rule.name).second) continue;
        text += fmt::format("\n# {} instances, {}\n{} {}\n", rule.instances, rule.arithmetic,
                            rule.name, rule.body);
        ++report_.rules;
      }
    }
    report_.text = std::move(text);
    std::sort(report_.extra_equations.begin(), report_.extra_equations.end());
  }

  bool Stopped() {
    if (!options_.stop || !options_.stop()) return false;
    report_.complete = false;
    return true;
  }

  void Say(const std::string& line) {
    const std::lock_guard lock(mutex_);
    if (options_.progress) options_.progress(line);
  }

  const GenerateOptions& options_;
  const SteadyClock::time_point start_;
  std::vector<Universe> universes_;
  std::vector<Equation> equations_;
  KnownRules known_;
  std::vector<Fate> fates_;  // By equation.
  ProofOptions proving_;
  Verdicts screened_, unproved_;  // Kept in all passes.
  GenerateReport report_;
  std::atomic<int64_t> reported_ = 0;
  std::mutex mutex_;
};

}  // namespace

StatusOr<GenerateReport> Generate(const GenerateOptions& options) {
  return Generator(options).Run();
}

}  // namespace ag::generate
