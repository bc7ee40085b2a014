#include "rules/match/rule_index.h"

#include <algorithm>

#include "rules/language/guards.h"

namespace ag {
namespace {

OpKinds KindsOf(const Term& term) {
  OpKinds kinds;
  if (term.kind == Term::Kind::kVariable) return kinds.set();
  if (term.kind == Term::Kind::kScalar) return kinds.set(static_cast<size_t>(OpKind::kConstant));
  if (term.op_class == 0) return kinds.set(static_cast<size_t>(term.op));
  for (const OpInfo& op : AllOps()) {
    if ((op.traits & term.op_class) != 0) kinds.set(static_cast<size_t>(op.kind));
  }
  return kinds;
}

// Returns how deep below the term its operators are, and its variables with `with_variables`.
int DepthOf(const Term& term, bool with_variables) {
  int depth = 0;
  for (const Term& operand : term.operands) {
    if (operand.kind != Term::Kind::kOperator && !with_variables) continue;
    depth = std::max(depth, 1 + DepthOf(operand, with_variables));
  }
  return depth;
}

bool AsksOfTypesAlone(const Expression& e) {
  if (e.kind == Expression::Kind::kCall && e.function->asks != Asks::kTypes) return false;
  return std::all_of(e.arguments.begin(), e.arguments.end(),
                     [](const Expression& argument) { return AsksOfTypesAlone(argument); });
}

bool AsksOfTypesAlone(const Term& term) {
  return std::all_of(term.attributes.begin(), term.attributes.end(),
                     [](const AttributeTerm& a) { return AsksOfTypesAlone(a.value); }) &&
         std::all_of(term.operands.begin(), term.operands.end(),
                     [](const Term& operand) { return AsksOfTypesAlone(operand); });
}

// Whether the pattern reads only types. A variable's tensor keeps its type as long as its reader
// reads it, so a change below the variable matters only to expressions that read more.
bool AsksOfTypesAlone(const RulePattern& pattern) {
  return std::all_of(pattern.guards.begin(), pattern.guards.end(),
                     [](const Guard& guard) { return AsksOfTypesAlone(guard.value); }) &&
         std::all_of(pattern.sources.begin(), pattern.sources.end(),
                     [](const Term& source) { return AsksOfTypesAlone(source); });
}

// Returns how deep below the term the variable of `slot` is at most; -1: nowhere.
int DepthOfSlot(const Term& term, int slot) {
  if (term.slot == slot && !term.indexed) return 0;
  int depth = -1;
  for (const Term& operand : term.operands) {
    const int below = DepthOfSlot(operand, slot);
    if (below >= 0) depth = std::max(depth, below + 1);
  }
  return depth;
}

// The matcher finds a second root among the readers of a variable that both roots have.
void FindPartners(const RulePattern& pattern, IndexedRule* indexed) {
  if (pattern.sources.size() == 1) return;
  indexed->partners = Partners::kAnyone;
  if (pattern.sources.size() > 2) return;
  indexed->partner_ops = KindsOf(pattern.sources[1]);
  for (const Term& operand : pattern.sources[1].operands) {
    if (operand.kind != Term::Kind::kVariable || operand.indexed || operand.spread) continue;
    indexed->partner_climb = DepthOfSlot(pattern.sources[0], operand.slot);
    if (indexed->partner_climb <= 0) continue;
    indexed->partners = Partners::kBelow;
    return;
  }
}

IndexedRule IndexRule(const Rule& rule) {
  const RulePattern& pattern = *rule.pattern;
  const Term& root = pattern.sources[0];
  IndexedRule indexed{.rule = &rule, .pattern = &pattern};
  const bool with_variables = !AsksOfTypesAlone(pattern);
  for (const Term& source : pattern.sources) {
    indexed.reach = std::max(indexed.reach, DepthOf(source, with_variables));
  }
  FindPartners(pattern, &indexed);
  const bool spreads = std::any_of(root.operands.begin(), root.operands.end(),
                                   [](const Term& operand) { return operand.spread; });
  if (spreads && root.operands.size() > 1) return indexed;
  indexed.spreads = spreads;
  // A class of operators may contain commutative ones.
  indexed.swaps = root.operands.size() == 2 && (root.op_class != 0 || Has(root.op, kCommutative));
  for (const Term& operand : root.operands) indexed.operands.push_back(KindsOf(operand));
  return indexed;
}

}  // namespace

bool IndexedRule::MayMatch(const Graph& graph, NodeId id) const {
  if (operands.empty()) return true;
  const Node& node = graph.node(id);
  const auto is = [&](size_t input, const OpKinds& kinds) {
    return kinds[static_cast<size_t>(graph.node(node.inputs[input].node).op)];
  };
  if (spreads) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!is(i, operands[0])) return false;
    }
    return true;
  }
  if (operands.size() != node.inputs.size()) return false;
  bool fits = true;
  for (size_t i = 0; i < operands.size(); ++i) fits = fits && is(i, operands[i]);
  return fits || (swaps && is(0, operands[1]) && is(1, operands[0]));
}

RuleIndex::RuleIndex(const RuleSet& rules, Kind kind) : by_root_(kOpKindCount) {
  for (const Rule& rule : rules.rules()) {
    if (rule.clean_up != (kind == Kind::kCleanUp)) continue;
    const int number = static_cast<int>(rules_.size());
    rules_.push_back(IndexRule(rule));
    reach_max_ = std::max(reach_max_, rules_.back().reach);
    const OpKinds roots = KindsOf(rule.pattern->sources[0]);
    for (size_t op = 0; op < by_root_.size(); ++op) {
      if (roots[op]) by_root_[op].push_back(number);
    }
  }
}

}  // namespace ag
