#include "rules/generate/generalize.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/random.h"
#include "base/text.h"
#include "graph/evaluate_as.h"
#include "graph/tensor.h"
#include "rules/generate/phrase.h"
#include "rules/instance.h"
#include "rules/rewrite.h"
#include "rules/trial.h"
#include "rules/verify.h"

namespace ag::generate {
namespace {

// A wrong wording is seldom right on so many instances; what survives goes to Verify.
constexpr int kScreenInstances = 16;
constexpr int kScreenDraws = 1000;
constexpr int kProofDraws = 5000;
// Where a class of instance comes up this seldom, the rule is given up rather than proved for
// minutes: `rules verify` looks six times as long, and finds what was found here.
constexpr int kClassDraws = 10'000;

// Whether a rule held on some instances: a quick look before the proof.
bool Screen(const RuleSet& set, uint64_t seed) {
  const Rule& rule = set.rules()[0];
  int instances = 0;
  for (int draw = 0; draw < kScreenDraws && instances < kScreenInstances; ++draw) {
    const uint64_t draw_seed = seed * 0x9e3779b97f4a7c15ull + static_cast<uint64_t>(draw) + 1;
    const auto instance = DrawInstance(*rule.pattern, draw_seed, 2 + draw % 4);
    if (!instance.has_value() || instance->elements > 8000) continue;
    const Trial trial = TryRule(rule, instance->graph, {.seed = draw_seed});
    if (trial.refused()) return false;
    instances += trial.outcome == Trial::Outcome::kHolds;
  }
  return instances == kScreenInstances;
}

// Whether Verify will find as many distinct instances as it asks for: a rule of few shapes (one
// tensor of rank 2, say) has fewer, and Verify would look for them for seconds.
bool CanBeDrawn(const RuleSet& set, const ProofOptions& options) {
  const Rule& rule = set.rules()[0];
  std::set<Digest> seen;
  for (int draw = 0; draw < kProofDraws; ++draw) {
    const uint64_t draw_seed = options.seed * 0x9e3779b97f4a7c15ull + static_cast<uint64_t>(draw);
    const auto instance = DrawInstance(*rule.pattern, draw_seed, 2 + draw % 4);
    if (!instance.has_value() || !seen.insert(instance->graph.digest()).second) continue;
    if (FindRewrites(instance->graph, set, 1).empty()) seen.erase(instance->graph.digest());
    if (static_cast<int>(seen.size()) >= options.instances) return true;
  }
  return false;
}

// ---- Non-finite numbers.

double DrawWild(Random& random) {
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
    for (double& value : input.values) value = DrawWild(random);
    inputs.push_back(std::move(input));
  }
  auto outputs = EvaluateAs<double>(graph, inputs, [&](NodeId id) -> StatusOr<Array<double>> {
    const Node& node = graph.node(id);
    const Tensor tensor = Tensor::View(node.outputs[0], node.constant->inline_bytes, node.constant);
    return ArrayOf<double>(node.outputs[0].shape, tensor.ToDoubles());
  });
  if (!outputs.ok()) return std::nullopt;
  return *std::move(outputs);
}

// Whether one side is finite where the other is not, once Inf or NaN comes in.
bool DiffersOnNonFinite(const Graph& source, const Graph& target, uint64_t seed) {
  for (uint64_t draw = 0; draw < 60; ++draw) {
    const auto a = RunWild(source, seed + draw), b = RunWild(target, seed + draw);
    if (!a || !b) return false;
    for (size_t o = 0; o < a->size(); ++o) {
      for (size_t i = 0; i < (*a)[o].values.size(); ++i) {
        if (std::isfinite((*a)[o].values[i]) != std::isfinite((*b)[o].values[i])) return true;
      }
    }
  }
  return false;
}

// ---- Keys.

class Keys {
 public:
  explicit Keys(const Graph& graph) : graph_(graph), keys_(static_cast<size_t>(graph.size())) {}

  std::string Of(Edge edge) {
    std::string& key = keys_[static_cast<size_t>(edge.node)];
    if (key.empty()) key = Make(edge.node);
    return edge.output == 0 ? key : fmt::format("{}#{}", key, edge.output);
  }

 private:
  bool IsZero(const Node& node) const {
    if (node.op == OpKind::kConstant) {
      const std::string& bytes = node.constant->inline_bytes;
      return std::all_of(bytes.begin(), bytes.end(), [](char c) { return c == 0; });
    }
    if (node.op == OpKind::kSub && node.inputs[0] == node.inputs[1]) return true;
    if (node.op != OpKind::kSub && node.op != OpKind::kAdd && node.op != OpKind::kConcat) {
      return false;
    }
    return std::all_of(node.inputs.begin(), node.inputs.end(),
                       [&](Edge e) { return IsZero(graph_.node(e.node)); });
  }

  std::string Make(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.op == OpKind::kInput) {
      for (size_t i = 0; i < graph_.inputs().size(); ++i) {
        if (graph_.inputs()[i] == id) return fmt::format("i{}", i);
      }
    }
    if (IsZero(node)) return "0" + ShapeToString(node.outputs[0].shape);
    if (node.op == OpKind::kConstant) return "c" + node.constant->digest.Hex();
    std::vector<std::string> operands;
    for (const Edge& e : node.inputs) operands.push_back(Of(e));
    if (Has(node.op, kCommutative)) std::sort(operands.begin(), operands.end());
    std::string key = Info(node.op).text_name + "(" + Join(operands, ",") + ";";
    for (const auto& [name, value] : node.attributes->items()) {
      if (const auto* i = std::get_if<int64_t>(&value)) key += fmt::format("{}={},", name, *i);
      if (const auto* l = std::get_if<Ints>(&value)) key += name + "=" + Join(*l, "x") + ",";
      if (const auto* d = std::get_if<double>(&value)) key += name + "=" + FormatDouble(*d) + ",";
    }
    key += ")";
    if (key.size() < 200) return key;
    return Sha256(key).Hex();
  }

  const Graph& graph_;
  std::vector<std::string> keys_;
};

// ---- Wordings and constraints.

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
      wording_ = &wording;
      const auto phrase = Say(table_, source_, target_, wording, {});
      if (phrase) wild_ = wild_ || phrase->zeros;
      if (!phrase || !tried_.insert(phrase->equation).second) continue;
      if (auto found = Try(phrase->constraints)) return found;
    }
    return std::nullopt;
  }

 private:
  std::optional<FoundRule> Try(const std::vector<Constraint>& all) const {
    if (Holds({})) {
      if (!CanBeDrawn(*Parsed({}, "rounding"), options_))
        return std::nullopt;  // Nor with constraints.
      if (auto found = Prove({})) return found;
    }
    if (all.empty() || !Holds(all)) return std::nullopt;
    std::vector<Constraint> kept = all;
    for (const Constraint& constraint : all) {
      std::vector<Constraint> fewer;
      for (const Constraint& other : kept) {
        if (!(other == constraint)) fewer.push_back(other);
      }
      if (Holds(fewer)) kept = std::move(fewer);
    }
    return Prove(kept);
  }

  // The rule with these constraints, parsed. nullopt: it does not parse.
  std::optional<RuleSet> Parsed(const std::vector<Constraint>& kept, std::string_view rule_class,
                                std::string* body = nullptr) const {
    const auto phrase = Say(table_, source_, target_, *wording_, kept);
    if (!phrase) return std::nullopt;
    const std::string text =
        fmt::format("[{}]: {}{}", rule_class, phrase->equation, GuardsOf(kept));
    if (body != nullptr) *body = text;
    const std::string name = body != nullptr ? NameOf(table_, source_, text) : "candidate";
    auto parsed = RuleSet::Parse(name + " " + text, "generated");
    if (!parsed.ok()) return std::nullopt;
    return *std::move(parsed);
  }

  bool Holds(const std::vector<Constraint>& kept) const {
    const auto rule = Parsed(kept, "rounding");
    return rule && Screen(*rule, options_.seed) && Rewrites(*rule, *before_, key_);
  }

  std::optional<FoundRule> Prove(const std::vector<Constraint>& kept) const {
    const auto draft = Parsed(kept, "rounding");
    if (!draft || (!kept.empty() && !CanBeDrawn(*draft, options_))) return std::nullopt;
    for (const char* rule_class : {"exact", "rounding"}) {
      FoundRule found;
      const char* said = wild_ ? "finite" : rule_class;
      auto rule = Parsed(kept, said, &found.body);
      if (!rule) return std::nullopt;
      if (!wild_ && std::string_view(said) == "exact" && !Screen(*rule, options_.seed)) continue;
      const VerifyReport report = ProveAgain(rule->rules()[0]);
      if (report.too_few_cases) return std::nullopt;  // In the other class as well.
      if (!report.proved) continue;
      found.name = rule->rules()[0].name;
      found.plain = Say(table_, source_, target_, *wording_, {})->equation;
      found.kept = kept;
      found.rule = *std::move(rule);
      found.instances = options_.rounds * report.instances;
      found.arithmetic = report.arithmetic;
      return found;
    }
    return std::nullopt;
  }

  // The first report that refuses, or the last one.
  VerifyReport ProveAgain(const Rule& rule) const {
    VerifyReport report;
    for (int round = 0; round < options_.rounds; ++round) {
      const uint64_t seed = options_.seed + 1000 * static_cast<uint64_t>(round);
      report = Verify(
          rule,
          {.instances_min = options_.instances, .seed = seed, .class_draws_max = kClassDraws});
      if (!report.proved) break;
    }
    return report;
  }

  const TermTable& table_;
  const std::vector<TermId>& source_;
  const std::vector<TermId>& target_;
  const ProofOptions options_;
  const Graph* before_ = nullptr;
  std::string key_;
  bool wild_ = false;
  const Wording* wording_ = nullptr;
  std::set<std::string> tried_;
};

}  // namespace

std::string KeyOf(const Graph& graph) {
  Keys keys(graph);
  std::string key;
  for (const GraphOutput& output : graph.outputs()) key += keys.Of(output.edge) + ";";
  return key;
}

bool Rewrites(const RuleSet& rule, const Graph& source, const std::string& target_key) {
  for (const Rewrite& rewrite : FindRewrites(source, rule, 2)) {
    const StatusOr<Graph> after = Apply(source, rewrite);
    if (after.ok() && KeyOf(*after) == target_key) return true;
  }
  return false;
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
