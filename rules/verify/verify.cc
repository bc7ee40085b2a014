#include "rules/verify/verify.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <thread>

#include "base/mutex.h"
#include "rules/match/matcher.h"
#include "rules/sets/built_in_rules.h"
#include "rules/verify/instance.h"
#include "rules/verify/instance_classes.h"
#include "rules/verify/shrink.h"
#include "rules/verify/trial.h"

namespace ag {
namespace {

// Most samples fit, and each takes tens of microseconds. A rule without enough instances after this
// many samples per instance has guards that no sample satisfies: a fault of the rule or of the
// generator.
constexpr int64_t kSamplesPerInstance = 2000;
constexpr int64_t kSamplesMax = std::numeric_limits<int>::max();
// The first refused case is seldom small, so this many small samples are tried for a better start.
constexpr int kSmallerStarts = 300;
constexpr int64_t kElementsMax = 20'000;

// The matcher accepts constants that differ by 1e-6. A rule may amplify such an error ten times at
// most. Its own constant may have an error of the same size.
constexpr double kDrift = 0.9e-6;
constexpr double kDriftErrorMax = 1e-5;
constexpr double kConstantErrorMax = 2e-6;
constexpr int kDriftSamples = 100;

// If the guards did not depend on a class, this many of its samples would pass them. The number is
// large because guards seldom are so: a class that passes a hundred times less often still comes
// up.
constexpr int kExpectedToPass = 500;

bool IsStopped(const VerifyOptions& options) { return options.stop != nullptr && options.stop(); }

class Verifier {
 public:
  Verifier(const Rule& rule, const VerifyOptions& options)
      : rule_(rule), options_(options), approximate_(HasApproximateConstants(*rule.pattern)) {
    for (const std::string& name : ApplicableClasses(*rule.pattern)) open_.insert(name);
    unguarded_.pattern = *rule.pattern;
    unguarded_.pattern.guards.clear();
    for (const Guard& guard : rule.pattern->guards) {
      guards_.push_back(unguarded_);
      guards_.back().pattern.guards.push_back(guard);
    }
    guards_.push_back({.pattern = *rule.pattern});
  }

  VerifyReport Run() {
    report_.rule = rule_.name;
    const int scarce = options_.scarce_samples_max;
    const auto samples_max = static_cast<int>(
        std::min(int64_t{options_.instances_min} * kSamplesPerInstance, kSamplesMax));
    for (int sample = 0; sample < samples_max && !failing_.has_value(); ++sample) {
      if (IsStopped(options_)) return Stopped();
      const bool enough = report_.instances >= options_.instances_min;
      if (enough && (open_.empty() || sample >= options_.class_samples_max)) break;
      if (!enough && scarce > 0 && sample >= scarce) break;
      Try(Mix(static_cast<uint64_t>(sample)), {.size = SizeOf(sample)});
      if (approximate_ && sample < kDriftSamples) TryDrifted(Mix(static_cast<uint64_t>(sample)));
    }
    if (failing_.has_value() && options_.explain) ReportSmallest();
    if (failing_.has_value() && !options_.explain) report_.counter_example = "differs\n";
    return Finish();
  }

 private:
  VerifyReport Stopped() const {
    VerifyReport report;
    report.rule = rule_.name;
    report.stopped = true;
    return report;
  }

  uint64_t Mix(uint64_t sample) const { return options_.seed * 0x9e3779b97f4a7c15ull + sample; }

  // Sizes go from small to large, again and again, and grow when small shapes give too few
  // instances.
  static int SizeOf(int sample) { return 2 + sample % (4 + std::min(sample / 1000, 16)); }

  CompareOptions Comparing(uint64_t seed) const {
    CompareOptions options{.seed = seed, .approximate_constants = approximate_};
    if (approximate_) options.tolerance = kConstantErrorMax;
    return options;
  }

  void Try(uint64_t seed, const SampleOptions& sample) {
    Choices choices(seed);
    const std::optional<Instance> instance = SampleInstance(*rule_.pattern, &choices, sample);
    if (!instance.has_value() || instance->elements > kElementsMax) return;
    if (!open_.empty()) CountGuards(instance->graph);
    // After enough instances, only cases of classes that did not come up yet are worth computing.
    const bool enough = report_.instances >= options_.instances_min;
    if (enough && !HasOpenClass(instance->graph)) return;
    const Trial trial = TryRule(rule_, instance->graph, Comparing(seed));
    if (trial.outcome == Trial::Outcome::kNoMatch) return;
    if (trial.refused()) {
      failing_ = FailingCase{choices.made(), sample, Comparing(seed)};
      return;
    }
    if (trial.outcome == Trial::Outcome::kUndecided) return;
    if (!seen_.insert(instance->graph.digest()).second) return;
    report_.float_error_max = std::max(report_.float_error_max, trial.float_error);
    weakest_ = std::max(weakest_, trial.arithmetic);
    ++report_.instances;
    for (const std::string& name : trial.classes) {
      ++classes_[name];
      open_.erase(name);
      ruled_out_.erase(name);
    }
  }

  bool HasOpenClass(const Graph& graph) const {
    std::vector<NodeId> all;
    for (NodeId id = 0; id < graph.size(); ++id) {
      if (!Has(graph.node(id).op, kLeaf)) all.push_back(id);
    }
    const std::set<std::string> classes = ClassesOf(graph, all);
    return std::any_of(open_.begin(), open_.end(),
                       [&](const std::string& name) { return classes.contains(name); });
  }

  // Tries the rule with approximate constants as another exporter may have rounded them.
  void TryDrifted(uint64_t seed) {
    CompareOptions options = Comparing(seed);
    options.tolerance = kDriftErrorMax;
    options.relative_to_inputs = true;
    const SampleOptions sample{.size = 3, .drift = kDrift};
    Choices choices(seed);
    const std::optional<Instance> instance = SampleInstance(*rule_.pattern, &choices, sample);
    if (!instance.has_value() || instance->elements > kElementsMax) return;
    const Trial trial = TryRule(rule_, instance->graph, options);
    report_.constant_error_max = std::max(report_.constant_error_max, trial.float_error);
    if (trial.refused() && !failing_.has_value()) {
      failing_ = FailingCase{choices.made(), sample, options};
    }
  }

  // The rule with some of its guards, and the number of graphs in which it then matches.
  struct Guarded {
    RulePattern pattern;
    int64_t matches = 0;  // Graphs.
    std::map<std::string, int64_t> classes;

    bool Count(const Graph& graph, const NodeIndex& index) {
      const auto found = FindMatches(graph, index, pattern, 0);
      std::set<std::string> names;
      for (const auto& match : found) names.merge(ClassesOf(graph, match.nodes));
      for (const std::string& name : names) ++classes[name];
      matches += !found.empty();
      return !found.empty();
    }
  };

  // Looks for a guard, or for all guards together, that excludes a class: none of its many cases
  // passes.
  void CountGuards(const Graph& graph) {
    if (rule_.pattern->guards.empty()) return;
    const NodeIndex index(graph);
    if (!unguarded_.Count(graph, index)) return;
    for (Guarded& guarded : guards_) {
      guarded.Count(graph, index);
      for (auto name = open_.begin(); name != open_.end();) {
        const int64_t samples = unguarded_.classes[*name];
        const bool ruled_out = guarded.classes[*name] == 0 &&
                               samples * guarded.matches >= kExpectedToPass * unguarded_.matches &&
                               samples > 0;
        if (ruled_out) ruled_out_[*name] = static_cast<int>(samples);
        name = ruled_out ? open_.erase(name) : std::next(name);
      }
    }
  }

  void ReportSmallest() {
    FailingCase start = *failing_;
    for (int i = 0; i < kSmallerStarts; ++i) {
      Choices choices(Mix(static_cast<uint64_t>(i) << 32));
      const SampleOptions sample{.size = 2, .drift = start.sample.drift};
      const std::optional<Instance> instance = SampleInstance(*rule_.pattern, &choices, sample);
      if (!instance.has_value() || choices.made().size() >= start.choices.size()) continue;
      if (!TryRule(rule_, instance->graph, start.compare).refused()) continue;
      start.choices = choices.made();
      start.sample = sample;
    }
    const SmallestCase smallest = Shrink(rule_, start);
    report_.ill_typed = smallest.trial.outcome == Trial::Outcome::kIllTyped;
    report_.counter_example = fmt::format("{}seed {}\n", smallest.trial.text, smallest.seed);
    if (report_.ill_typed && rule_.target.column > 0) {
      const Status points = ErrorAt(rule_.file, rule_.target, smallest.trial.what);
      report_.counter_example += Message(points) + "\n";
    }
    if (start.sample.drift > 0) {
      report_.counter_example +=
          fmt::format("the rule's constants are off by {} here, which matches\n", kDrift);
    }
  }

  VerifyReport Finish() {
    report_.classes.assign(classes_.begin(), classes_.end());
    report_.ruled_out.assign(ruled_out_.begin(), ruled_out_.end());
    report_.arithmetic = ArithmeticName(weakest_);
    if (report_.counter_example.empty() && report_.instances < options_.instances_min) {
      report_.counter_example = fmt::format("only {} of {} instances could be sampled\n",
                                            report_.instances, options_.instances_min);
    }
    for (const std::string& name : open_) {
      if (failing_.has_value() || report_.instances < options_.instances_min) break;
      report_.counter_example += fmt::format(
          "no instance of class '{}', which the operators admit, was sampled; without the guards "
          "{} "
          "were: too few to say that the guards rule it out\n",
          name, unguarded_.classes[name]);
    }
    report_.proved = report_.counter_example.empty();
    report_.too_few_cases = !report_.proved && !failing_.has_value();
    return std::move(report_);
  }

  const Rule& rule_;
  const VerifyOptions& options_;
  const bool approximate_;
  VerifyReport report_;
  std::set<Digest> seen_;
  std::map<std::string, int> classes_;
  std::set<std::string> open_;  // Classes that apply and did not come up yet.
  std::map<std::string, int> ruled_out_;
  Guarded unguarded_;
  std::vector<Guarded> guards_;  // One with each guard, and one with all.
  std::optional<FailingCase> failing_;
  Arithmetic weakest_ = Arithmetic::kField;
};

}  // namespace

VerifyReport Verify(const Rule& rule, const VerifyOptions& options) {
  return Verifier(rule, options).Run();
}

namespace {

// Passes reports on in the order of the rules, whichever thread made them first.
class InOrder {
 public:
  InOrder(const std::vector<const Rule*>& rules,
          const std::function<bool(const Rule&, VerifyReport)>& done)
      : rules_(rules), done_(done) {}

  // Returns false when the remaining rules are to be skipped.
  bool Add(size_t at, VerifyReport report) AG_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    waiting_.emplace(at, std::move(report));
    while (go_on_ && !waiting_.empty() && waiting_.begin()->first == next_) {
      go_on_ = done_(*rules_[next_], std::move(waiting_.begin()->second));
      waiting_.erase(waiting_.begin());
      ++next_;
    }
    return go_on_;
  }

 private:
  const std::vector<const Rule*>& rules_;
  const std::function<bool(const Rule&, VerifyReport)>& done_;
  Mutex mutex_;
  std::map<size_t, VerifyReport> waiting_ AG_GUARDED_BY(mutex_);
  size_t next_ AG_GUARDED_BY(mutex_) = 0;
  bool go_on_ AG_GUARDED_BY(mutex_) = true;
};

}  // namespace

void VerifyAll(const std::vector<const Rule*>& rules, const VerifyOptions& options, int jobs,
               const std::function<bool(const Rule&, VerifyReport)>& done) {
  InOrder reports(rules, done);
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < rules.size(); i = next++) {
      VerifyReport report = Verify(*rules[i], options);
      if (report.stopped || !reports.Add(i, std::move(report))) return;
    }
  };
  std::vector<std::jthread> threads;
  for (int i = 1; i < jobs; ++i) threads.emplace_back(work);
  work();
}

namespace {

// Returns the type error of a rule whose target does not fit in more than a quarter of its small
// cases. In the others, axes of size 1 and square shapes hide the mistake.
Status CheckTypes(const Rule& rule) {
  constexpr int kSamples = 400, kInstances = 20;
  int instances = 0, ill_typed = 0;
  int64_t elements = kElementsMax;
  Trial smallest;
  for (uint64_t seed = 0; seed < kSamples && instances < kInstances; ++seed) {
    const std::optional<Instance> instance = SampleInstance(*rule.pattern, seed, 3);
    if (!instance.has_value()) continue;
    Trial trial = TryRule(rule, instance->graph, {.seed = seed});
    instances += trial.outcome != Trial::Outcome::kNoMatch;
    if (trial.outcome != Trial::Outcome::kIllTyped) continue;
    ++ill_typed;
    if (instance->elements >= elements) continue;
    elements = instance->elements;
    smallest = std::move(trial);
  }
  if (4 * ill_typed <= instances) return OkStatus();
  const Status error =
      ErrorAt(rule.file, rule.target, fmt::format("rule '{}': {}", rule.name, smallest.what));
  return Err(StatusCode::kInvalidArgument, "{}\n{}", Message(error), smallest.text);
}

}  // namespace

Status CheckTypes(const std::vector<const Rule*>& rules) {
  for (const Rule* rule : rules) AG_TRY(CheckTypes(*rule));
  return OkStatus();
}

Status RequireVerified(const RuleSet& rules, const VerifyOptions& options) {
  std::vector<const Rule*> open;
  for (const Rule& rule : rules.rules()) {
    if (!ProofOf(rule).has_value()) open.push_back(&rule);
  }
  AG_TRY(CheckTypes(open));
  Status refused = OkStatus();
  const auto take = [&](const Rule& rule, const VerifyReport& report) {
    if (report.proved) return true;
    refused = Err(StatusCode::kFailedPrecondition, "{}:{}: rule '{}' is not proved:\n{}", rule.file,
                  rule.line, rule.name, report.counter_example);
    return false;
  };
  VerifyAll(open, options, /*jobs=*/2, take);
  if (refused.ok() && IsStopped(options)) return Err(StatusCode::kCancelled, "interrupted");
  return refused;
}

}  // namespace ag
