#include "rules/generate/known.h"

#include <algorithm>
#include <set>

#include "rules/applier.h"
#include "rules/matcher.h"

namespace ag::generate {
namespace {

// Graphs that are looked at after the first step, and how many of each: a chain through more than
// this is not looked for.
constexpr size_t kWidth = 24;

// op(x, op(y, z)) and op(y, op(x, z)), or, where the order matters, op(op(x, y), z).
StatusOr<std::pair<Graph, Graph>> Groupings(OpKind op) {
  const auto make = [&](bool right) -> StatusOr<Graph> {
    GraphBuilder builder;
    std::vector<Edge> x;
    for (const char* name : {"x", "y", "z"}) {
      x.push_back(builder.Input(name, {DType::kFloat64, {2, 2}}));
    }
    Attributes attributes;
    if (op == OpKind::kConcat) attributes.Set("axis", int64_t{0});
    const auto both = [&](Edge a, Edge b) { return builder.Add1(op, {a, b}, attributes); };
    Edge root;
    if (right) {
      AG_LET(const Edge inner, both(x[1], x[2]));
      AG_LET(root, both(x[0], inner));
    } else if (Has(op, kCommutative)) {
      AG_LET(const Edge inner, both(x[0], x[2]));
      AG_LET(root, both(x[1], inner));
    } else {
      AG_LET(const Edge inner, both(x[0], x[1]));
      AG_LET(root, both(inner, x[2]));
    }
    builder.Output(root, "o");
    return builder.Build();
  };
  AG_LET(Graph left, make(true));
  AG_LET(Graph right, make(false));
  return std::pair(std::move(left), std::move(right));
}

}  // namespace

void KnownRules::Add(KnownEquation equation) {
  equations_.push_back(std::move(equation));
  LearnGrouping();
}

std::vector<FoundRule*> KnownRules::rules() {
  std::vector<FoundRule*> all;
  for (KnownEquation& equation : equations_) {
    if (equation.redundant) continue;
    for (FoundRule& rule : equation.rules) all.push_back(&rule);
  }
  return all;
}

void KnownRules::Remove(const std::set<const FoundRule*>& rules) {
  std::vector<KnownEquation> equations;
  for (KnownEquation& equation : equations_) {
    std::vector<FoundRule> kept;
    for (FoundRule& rule : equation.rules) {
      if (!rules.contains(&rule)) kept.push_back(std::move(rule));
    }
    equation.rules = std::move(kept);
    equation.groups = false;
    if (!equation.rules.empty()) equations.push_back(std::move(equation));
  }
  equations_.clear();
  grouped_ = 0;
  for (KnownEquation& equation : equations) Add(std::move(equation));
}

void KnownRules::LearnGrouping() {
  for (const OpKind op :
       {OpKind::kAdd, OpKind::kMul, OpKind::kMax, OpKind::kMatMul, OpKind::kConcat}) {
    if ((grouped_ & MaskOf(op)) != 0) continue;
    const auto said = [&](const FoundRule& rule) {
      const RulePattern& pattern = *rule.rule.rules()[0].pattern;
      return pattern.guards.empty() && OpsIn(pattern) == MaskOf(op);
    };
    if (std::none_of(equations_.back().rules.begin(), equations_.back().rules.end(), said))
      continue;
    const auto sides = Groupings(op);
    if (!sides.ok() || !Imply(sides->first, sides->second)) continue;
    grouped_ |= MaskOf(op);
    equations_.back().groups = true;
  }
}

std::vector<KnownRules::Reached> KnownRules::Neighbors(const Graph& graph, int without) const {
  const OpMask ops = OpsIn(graph);
  const NodeIndex index(graph);
  std::vector<Reached> reached;
  std::set<std::string> seen;
  for (size_t i = 0; i < equations_.size(); ++i) {
    if (static_cast<int>(i) == without || equations_[i].redundant) continue;
    for (const FoundRule& found : equations_[i].rules) {
      if ((found.ops & ops) != found.ops) continue;
      const RulePattern& pattern = *found.rule.rules()[0].pattern;
      for (const auto& match : FindMatches(graph, index, pattern, 1)) {
        GraphBuilder builder(graph);
        if (!ApplyTo(&builder, graph, pattern, match).ok()) continue;
        StatusOr<Graph> after = builder.Build();
        if (!after.ok()) continue;
        std::string key = KeyOf(*after, grouped_);
        if (seen.insert(key).second) reached.push_back({std::move(key), *std::move(after)});
      }
    }
  }
  return reached;
}

bool KnownRules::Imply(const Graph& left, const Graph& right, int without) const {
  if (equations_.empty()) return false;
  const std::string goal = KeyOf(right, grouped_);
  const std::string start = KeyOf(left, grouped_);
  if (start == goal) return true;
  const std::vector<Reached> from_left = Neighbors(left, without);
  for (const Reached& reached : from_left) {
    if (reached.key == goal) return true;
  }
  if (left.outputs().size() > 1) {
    // What merges roots binds what no single rule can: only the way from the left counts.
    for (size_t i = 0; i < from_left.size() && i < kWidth; ++i) {
      for (const Reached& reached : Neighbors(from_left[i].graph, without)) {
        if (reached.key == goal) return true;
      }
    }
    return false;
  }
  std::set<std::string> goals = {start};
  for (const Reached& reached : from_left) goals.insert(reached.key);
  const std::vector<Reached> from_right = Neighbors(right, without);
  for (const Reached& reached : from_right) {
    if (goals.contains(reached.key)) return true;
  }
  // A third step from the right, which is the larger side: most rules make smaller.
  for (size_t i = 0; i < from_right.size() && i < kWidth; ++i) {
    for (const Reached& reached : Neighbors(from_right[i].graph, without)) {
      if (goals.contains(reached.key)) return true;
    }
  }
  return false;
}

void KnownRules::Reduce() {
  for (size_t i = equations_.size(); i-- > 0;) {
    KnownEquation& known = equations_[i];
    known.redundant = !known.groups && Imply(known.left, known.right, static_cast<int>(i));
  }
}

void KnownRules::Restore() {
  for (KnownEquation& known : equations_) known.redundant = false;
}

}  // namespace ag::generate
