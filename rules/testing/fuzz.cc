#include "rules/testing/fuzz.h"

#include <algorithm>
#include <optional>

#include "base/random.h"
#include "graph/passes/rebuild.h"
#include "graph/testing/random_graph.h"
#include "graph/text_form.h"
#include "rules/match/applier.h"
#include "rules/match/matcher.h"
#include "rules/match/random_match.h"
#include "rules/match/rewrite.h"
#include "rules/match/rule_clean_up.h"
#include "rules/verify/compare.h"
#include "rules/verify/instance.h"

namespace ag {
namespace {

constexpr int kNodesMax = 60;
constexpr int64_t kFuzzElementsMax = 20'000;
constexpr int kStepsMax = 8;
constexpr int kDrawsOfCase = 40;
constexpr const char* kCleanUp = "clean-up";
// For doubles, when no exact comparison exists: quotients and cancellation amplify rounding errors.
constexpr double kTolerance = 1e-6;

int64_t ElementsOf(const Graph& graph) {
  int64_t elements = 0;
  for (const Node& node : graph.nodes()) {
    for (const TensorType& type : node.outputs) elements += type.NumElements();
  }
  return elements;
}

// Joins cases of several rules: an input of a later case often reads a result of an earlier one.
class Mixer {
 public:
  Mixer(const RuleSet& rules, uint64_t seed) : rules_(rules), random_(seed) {}

  std::optional<Graph> Mix() {
    const int cases = static_cast<int>(random_.Between(1, 4));
    for (int i = 0; i < cases; ++i) {
      const Rule& rule = rules_.rules()[random_.Below(rules_.rules().size())];
      const std::optional<Instance> instance = CaseOf(rule);
      if (instance.has_value() && !Add(instance->graph)) return std::nullopt;
    }
    if (outputs_ == 0) return std::nullopt;
    StatusOr<Graph> graph = builder_.Build();
    if (!graph.ok()) return std::nullopt;
    return *std::move(graph);
  }

 private:
  // Returns an instance in which the rule applies, if the guards let it find one soon.
  std::optional<Instance> CaseOf(const Rule& rule) {
    std::optional<Instance> instance;
    for (int i = 0; i < kDrawsOfCase; ++i) {
      instance = SampleInstance(*rule.pattern, random_.Next(), 3);
      if (!instance.has_value()) continue;
      const NodeIndex index(instance->graph);
      if (!FindMatches(instance->graph, index, *rule.pattern, 0).empty()) break;
    }
    return instance;
  }

  bool Add(const Graph& graph) {
    std::map<Edge, Edge> made;
    for (const NodeId id : graph.inputs()) made[{id, 0}] = InputFor(graph.type({id, 0}));
    for (NodeId id = 0; id < graph.size(); ++id) {
      const Node& node = graph.node(id);
      if (node.op == OpKind::kInput) continue;
      std::vector<Edge> operands;
      for (const Edge& e : node.inputs) operands.push_back(made.at(e));
      const StatusOr<NodeId> copy = builder_.AddCopy(node, operands);
      if (!copy.ok()) return false;
      for (int32_t i = 0; i < static_cast<int32_t>(node.outputs.size()); ++i) {
        made[{id, i}] = {*copy, i};
        given_.push_back({*copy, i});
      }
    }
    for (const GraphOutput& output : graph.outputs()) {
      builder_.Output(made.at(output.edge), fmt::format("o{}", outputs_++));
    }
    return true;
  }

  Edge InputFor(const TensorType& type) {
    std::vector<Edge> fitting;
    for (const Edge& e : given_) {
      if (builder_.type(e) == type) fitting.push_back(e);
    }
    if (!fitting.empty() && random_.Below(3) > 0) return fitting[random_.Below(fitting.size())];
    const Edge input = builder_.Input(fmt::format("x{}", inputs_++), type);
    given_.push_back(input);
    return input;
  }

  const RuleSet& rules_;
  Random random_;
  GraphBuilder builder_;
  std::vector<Edge> given_;
  int inputs_ = 0, outputs_ = 0;
};

class Fuzzer {
 public:
  Fuzzer(const RuleSet& rules, const FuzzOptions& options) : rules_(rules), options_(options) {}

  FuzzReport Run() {
    for (uint64_t seed = options_.seed; report_.rewrites < options_.rewrites; ++seed) {
      report_.seed = seed;
      const std::optional<Graph> graph =
          seed % 4 == 0 ? RandomGraph(seed, nullptr, {.nodes = 20}) : Mixer(rules_, seed).Mix();
      if (!graph.has_value() || graph->size() > kNodesMax) continue;
      ++report_.graphs;
      if (!Walk(*graph, seed)) break;
    }
    return std::move(report_);
  }

 private:
  // A change of the graph: a rule, or clean-up.
  struct Step {
    std::string what;
    bool approximate;  // It has constants that stand for irrational numbers.
    bool exact;        // It preserves Inf and NaN.
  };

  // Returns false after a difference.
  bool Walk(Graph graph, uint64_t seed) {
    Random random(seed ^ 0x9e3779b97f4a7c15ull);
    for (int steps = 0; steps < kStepsMax; ++steps) {
      const auto [rule, match] = ChooseMatch(graph, rules_, random);
      if (rule == nullptr) break;
      GraphBuilder builder(graph);
      const bool applied = ApplyTo(&builder, graph, *rule->pattern, match).ok();
      const StatusOr<Graph> after = applied ? builder.Build() : graph;
      if (!applied || !after.ok()) {
        ++report_.refused;
        continue;
      }
      ++report_.rewrites;
      ++report_.by_rule[rule->name];
      const Step step{.what = rule->name,
                      .approximate = HasApproximateConstants(*rule->pattern),
                      .exact = rule->rule_class == RuleClass::kExact};
      if (!Same(step, graph, *after, seed)) return false;
      graph = *after;
      if (graph.size() > 2 * kNodesMax || ElementsOf(graph) > kFuzzElementsMax) break;
    }
    const StatusOr<Graph> clean = CleanUp(graph, rules_);
    if (!clean.ok()) {
      report_.difference = ToString(clean.status());
      return false;
    }
    return Same({.what = kCleanUp, .approximate = true, .exact = false}, graph, *clean, seed);
  }

  bool Same(const Step& step, const Graph& before, const Graph& after, uint64_t seed) {
    const Comparison comparison =
        Compare(before, after,
                {.seed = seed, .tolerance = kTolerance, .approximate_constants = step.approximate});
    const bool exact = comparison.arithmetic != Arithmetic::kFloat64;
    if (!comparison.computed || (!exact && !step.exact && comparison.non_finite)) {
      ++report_.undecided;
      return true;
    }
    if (exact && step.what != kCleanUp) ++report_.exact;
    if (exact || comparison.equal) return true;
    report_.difference = fmt::format("{}\n{}=>\n{}{}", step.what, FormatGraph(before),
                                     FormatGraph(after), comparison.difference);
    return false;
  }

  const RuleSet& rules_;
  const FuzzOptions& options_;
  FuzzReport report_;
};

}  // namespace

FuzzReport Fuzz(const RuleSet& rules, const FuzzOptions& options) {
  return Fuzzer(rules, options).Run();
}

}  // namespace ag
