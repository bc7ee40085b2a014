#include "rules/rule_index.h"

#include <algorithm>

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

int DepthOf(const Term& term) {
  int depth = 0;
  for (const Term& operand : term.operands) depth = std::max(depth, 1 + DepthOf(operand));
  return depth;
}

// How deep below the term the variable of `slot` stands at most; -1 when nowhere.
int DepthOfSlot(const Term& term, int slot) {
  if (term.slot == slot && !term.indexed) return 0;
  int depth = -1;
  for (const Term& operand : term.operands) {
    const int below = DepthOfSlot(operand, slot);
    if (below >= 0) depth = std::max(depth, below + 1);
  }
  return depth;
}

// The matcher goes from the first root to readers of a variable that both roots know.
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
  for (const Term& source : pattern.sources) {
    indexed.reach = std::max(indexed.reach, DepthOf(source));
  }
  FindPartners(pattern, &indexed);
  const bool spreads = std::any_of(root.operands.begin(), root.operands.end(),
                                   [](const Term& operand) { return operand.spread; });
  if (spreads && root.operands.size() > 1) return indexed;
  indexed.spreads = spreads;
  // A class is taken to hold commutative operators.
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
