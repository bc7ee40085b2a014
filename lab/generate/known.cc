#include "lab/generate/known.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "rules/match/applier.h"
#include "rules/match/matcher.h"

namespace ag::generate {
namespace {

// Graphs examined after the first step. Longer searches are not made.
constexpr size_t kWidth = 24;

// Returns op(x, op(y, z)) and op(y, op(x, z)) or, when the order matters, op(op(x, y), z).
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

Ways KnownEquation::ruled() const {
  Ways ways;
  for (const FoundRule& rule : rules) (rule.forward ? ways.forward : ways.back) = true;
  return ways;
}

bool KnownEquation::two_way() const {
  const Ways by_rule = ruled();
  return (by_rule.forward || grows.forward || implied.forward) &&
         (by_rule.back || grows.back || implied.back);
}

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
  std::vector<bool> redundant;
  for (KnownEquation& equation : equations) {
    redundant.push_back(std::exchange(equation.redundant, false));
    const Ways still = Imply(equation.left, equation.right, equation.implied);
    equation.implied.forward &= still.forward;
    equation.implied.back &= still.back;
    Add(std::move(equation));
  }
  for (size_t i = 0; i < redundant.size(); ++i) equations_[i].redundant = redundant[i];
}

void KnownRules::LearnGrouping() {
  for (const OpKind op :
       {OpKind::kAdd, OpKind::kMul, OpKind::kMax, OpKind::kMatMul, OpKind::kConcat}) {
    if ((grouped_ & MaskOf(op)).any()) continue;
    const auto said = [&](const FoundRule& rule) {
      const RulePattern& pattern = *rule.rule.rules()[0].pattern;
      return pattern.guards.empty() && OpsIn(pattern) == MaskOf(op);
    };
    if (std::none_of(equations_.back().rules.begin(), equations_.back().rules.end(), said))
      continue;
    const auto sides = Groupings(op);
    const Ways both{.forward = true, .back = true};
    if (!sides.ok() || !Imply(sides->first, sides->second, both).Answer(both)) continue;
    grouped_ |= MaskOf(op);
    equations_.back().groups = true;
  }
}

std::vector<KnownRules::Reached> KnownRules::Neighbors(const Graph& graph, int without) const {
  const OpMask ops = OpsIn(graph);
  const NodeIndex index(graph);
  std::vector<Reached> reached;
  std::map<std::string, size_t> seen;
  for (size_t i = 0; i < equations_.size(); ++i) {
    if (static_cast<int>(i) == without || equations_[i].redundant) continue;
    const bool two_way = equations_[i].two_way();
    for (const FoundRule& found : equations_[i].rules) {
      if ((found.ops & ops) != found.ops) continue;
      const RulePattern& pattern = *found.rule.rules()[0].pattern;
      for (const auto& match : FindMatches(graph, index, pattern, 1)) {
        GraphBuilder builder(graph);
        if (!ApplyTo(&builder, graph, pattern, match).ok()) continue;
        StatusOr<Graph> after = builder.Build();
        if (!after.ok()) continue;
        std::string key = KeyOf(*after, grouped_);
        const auto [known, fresh] = seen.emplace(key, reached.size());
        if (fresh) {
          reached.push_back({std::move(key), *std::move(after), two_way});
        } else {
          reached[known->second].two_way |= two_way;
        }
      }
    }
  }
  return reached;
}

// Whether rules lead there in at most two steps along their arrows. A rule that merges roots binds
// more than a single rule can.
bool KnownRules::Leads(const Graph& from, const Graph& to, int without) const {
  const std::string goal = KeyOf(to, grouped_);
  if (KeyOf(from, grouped_) == goal) return true;
  const std::vector<Reached> first = Neighbors(from, without);
  const auto is_goal = [&](const Reached& reached) { return reached.key == goal; };
  if (std::any_of(first.begin(), first.end(), is_goal)) return true;
  for (size_t i = 0; i < first.size() && i < kWidth; ++i) {
    const std::vector<Reached> second = Neighbors(first[i].graph, without);
    if (std::any_of(second.begin(), second.end(), is_goal)) return true;
  }
  return false;
}

Ways KnownRules::Imply(const Graph& left, const Graph& right, const Ways& asked,
                       int without) const {
  if (equations_.empty()) return {};
  if (left.outputs().size() > 1) {
    return {.forward = asked.forward && Leads(left, right, without),
            .back = asked.back && Leads(right, left, without)};
  }
  const std::string goal = KeyOf(right, grouped_);
  const std::string start = KeyOf(left, grouped_);
  if (start == goal) return {.forward = true, .back = true};
  const std::vector<Reached> from_left = Neighbors(left, without);
  Ways ways;
  for (const Reached& reached : from_left) {
    if (reached.key == goal) ways = {.forward = true, .back = reached.two_way};
  }
  if (ways.Answer(asked)) return ways;
  std::map<std::string, bool> goals = {{start, true}};  // To whether there is a way back from it.
  for (const Reached& reached : from_left) goals[reached.key] |= reached.two_way;
  const auto meet = [&](const Reached& reached, bool two_way) {
    const auto found = goals.find(reached.key);
    if (found == goals.end()) return false;
    ways.forward |= two_way && reached.two_way;
    ways.back |= found->second;
    return ways.Answer(asked);
  };
  const std::vector<Reached> from_right = Neighbors(right, without);
  for (const Reached& reached : from_right) {
    if (meet(reached, true)) return ways;
  }
  // A third step starts at the right side, which is larger, because most rules make graphs smaller.
  for (size_t i = 0; i < from_right.size() && i < kWidth; ++i) {
    for (const Reached& reached : Neighbors(from_right[i].graph, without)) {
      if (meet(reached, from_right[i].two_way)) return ways;
    }
  }
  return ways;
}

void KnownRules::Reduce() {
  for (size_t i = equations_.size(); i-- > 0;) {
    KnownEquation& known = equations_[i];
    known.redundant =
        !known.groups &&
        Imply(known.left, known.right, known.asked, static_cast<int>(i)).Answer(known.asked);
  }
}

void KnownRules::Restore() {
  for (KnownEquation& known : equations_) known.redundant = false;
}

}  // namespace ag::generate
