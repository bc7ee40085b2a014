#include "rules/match/matcher.h"

#include <algorithm>

#include "rules/language/guards.h"

namespace ag {

bool MayBeRoot(const Graph& graph, NodeId id) {
  const OpKind op = graph.node(id).op;
  return !Has(op, kLeaf) && !Has(op, kBarrier) && !graph.is_constant(id);
}

const std::vector<NodeId>& NodeIndex::Of(OpKind op) const {
  if (nodes_.empty()) Fill();
  return nodes_[static_cast<size_t>(op)];
}

const std::vector<NodeId>& NodeIndex::All() const {
  if (nodes_.empty()) Fill();
  return all_;
}

void NodeIndex::Fill() const {
  nodes_.resize(kOpKindCount);
  for (NodeId id = 0; id < graph_.size(); ++id) {
    if (!MayBeRoot(graph_, id)) continue;
    nodes_[static_cast<size_t>(graph_.node(id).op)].push_back(id);
    all_.push_back(id);
  }
}

// One thing left to do; `next` is the rest of the list.
struct Matcher::Goal {
  const Term* term = nullptr;            // Match this term ...
  Edge edge;                             // ... with this edge,
  const AttributeTerm* check = nullptr;  // or compare this attribute of edge.node,
  int root = -1;                         // or find this root and those after it.
  int position = -1;                     // The i of the goal's family.
  NodeId parent = -1;                    // The node whose operand the term is.
  const Goal* next = nullptr;
};

Matcher::Matcher(const Graph& graph, const NodeIndex& index, const RulePattern& pattern,
                 Found found, void* context)
    : graph_(graph),
      index_(index),
      pattern_(pattern),
      by_element_(IsByElement(pattern)),
      found_(found),
      context_(context) {
  bindings_.slots.resize(pattern.slots.size());
  bindings_.counts.assign(pattern.indices.size(), -1);
  bindings_.roots.resize(pattern.sources.size());
}

void Matcher::Run() {
  const Goal start{.root = 0};
  Solve(&start);
}

void Matcher::RunAt(NodeId root) { TryRoot({.root = 0}, {root, pattern_.sources[0].output}); }

bool Matcher::Solve(const Goal* goals) {
  if (goals == nullptr) return SolveGuards();
  if (goals->root >= 0) return SolveRoot(*goals);
  if (goals->check != nullptr) return SolveCheck(*goals);
  return SolveTerm(*goals);
}

// Returns the nodes that read a bound variable, or all nodes of the operator's kind.
const std::vector<NodeId>& Matcher::Candidates(const Term& term,
                                               std::vector<NodeId>* storage) const {
  for (const Term& operand : term.operands) {
    if (operand.kind != Term::Kind::kVariable || operand.indexed || operand.spread) continue;
    const Value& value = bindings_.At(operand.slot, 0);
    if (!IsBound(value)) continue;
    for (const Use& use : graph_.uses(std::get<Edge>(value))) {
      if (!graph_.is_constant(use.node)) storage->push_back(use.node);
    }
    std::sort(storage->begin(), storage->end());
    storage->erase(std::unique(storage->begin(), storage->end()), storage->end());
    return *storage;
  }
  return term.op_class != 0 ? index_.All() : index_.Of(term.op);
}

bool Matcher::SolveRoot(const Goal& goal) {
  if (goal.root == static_cast<int>(pattern_.sources.size())) return Solve(goal.next);
  const Term& term = pattern_.sources[goal.root];
  std::vector<NodeId> storage;
  for (const NodeId id : Candidates(term, &storage)) {
    if (!TryRoot(goal, {id, term.output})) return false;
  }
  return true;
}

bool Matcher::TryRoot(const Goal& goal, Edge edge) {
  const Term& term = pattern_.sources[goal.root];
  if (edge.output >= static_cast<int>(graph_.node(edge.node).outputs.size())) return true;
  for (int r = 0; r < goal.root; ++r) {
    if (bindings_.roots[r][0] == edge) return true;
  }
  bindings_.roots[goal.root].assign(1, edge);
  if (pattern_.each >= 0 && !by_element_) {
    bindings_.roots[goal.root].clear();
    const int n = static_cast<int>(graph_.node(edge.node).outputs.size());
    for (int i = 0; i < n; ++i) bindings_.roots[goal.root].push_back({edge.node, i});
  }
  const Goal rest{.root = goal.root + 1, .next = goal.next};
  const Goal first{
      .term = &term, .edge = edge, .position = pattern_.each >= 0 ? 0 : -1, .next = &rest};
  return Solve(&first);
}

bool Matcher::Bind(int slot, int position, const Value& value) {
  auto& values = bindings_.slots[slot];
  const int at = pattern_.slots[slot].index < 0 ? 0 : std::max(position, 0);
  if (static_cast<int>(values.size()) <= at) values.resize(at + 1);
  if (IsBound(values[at])) {
    if (const auto* label = std::get_if<LabelValue>(&value)) {
      if (pattern_.slots[slot].kind == SlotInfo::Kind::kNode) return values[at] == value;
      const Node& a = graph_.node(label->node);
      const Node& b = graph_.node(std::get<LabelValue>(values[at]).node);
      return a.op == b.op && *a.attributes == *b.attributes;
    }
    return SameValue(values[at], value);
  }
  values[at] = value;
  trail_.emplace_back(slot, at);
  return true;
}

bool Matcher::BindCount(int index, int count) {
  int& bound = bindings_.counts[index];
  if (bound >= 0) return bound == count;
  bound = count;
  trail_.emplace_back(-1 - index, 0);
  return true;
}

void Matcher::Rewind(size_t mark) {
  for (; trail_.size() > mark; trail_.pop_back()) {
    const auto [slot, position] = trail_.back();
    if (slot >= 0) {
      auto& values = bindings_.slots[slot];
      values[position] = std::monostate{};
      while (!values.empty() && !IsBound(values.back())) values.pop_back();
    } else {
      bindings_.counts[-1 - slot] = -1;
    }
  }
}

bool Matcher::SolveTerm(const Goal& goal) {
  const size_t mark = trail_.size();
  bool go_on = true;
  switch (goal.term->kind) {
    case Term::Kind::kVariable:
      if (Bind(goal.term->slot, goal.position, goal.edge)) go_on = Solve(goal.next);
      break;
    case Term::Kind::kScalar:
      go_on = SolveScalar(goal);
      break;
    case Term::Kind::kOperator:
      go_on = SolveOperator(goal);
      break;
  }
  Rewind(mark);
  return go_on;
}

// Matches a float constant of one element that does not change its reader's shape.
bool Matcher::SolveScalar(const Goal& goal) {
  const std::optional<double> number = ConstantNumber(graph_, goal.edge);
  if (!number.has_value()) return true;
  if (goal.parent >= 0) {
    const size_t rank = graph_.type(goal.edge).shape.size();
    bool fits = false;
    for (const Edge& other : graph_.node(goal.parent).inputs) {
      fits |= other != goal.edge && graph_.type(other).shape.size() >= rank;
    }
    if (!fits) return true;
  }
  const Expression& e = goal.term->scalar;
  if (e.kind == Expression::Kind::kVariable) {
    return Bind(e.slot, goal.position, *number) ? Solve(goal.next) : true;
  }
  const auto wanted = Evaluate(e, {graph_, bindings_, goal.position});
  if (!wanted.has_value()) return true;
  // A difference in the last places of the constant's element type.
  const DType dtype = graph_.type(goal.edge).dtype;
  const double tolerance = dtype == DType::kBFloat16  ? 8e-3
                           : dtype == DType::kFloat16 ? 1e-3
                                                      : 1e-6;
  const auto* integer = std::get_if<int64_t>(&*wanted);
  const auto* real = std::get_if<double>(&*wanted);
  if (integer == nullptr && real == nullptr) return true;
  const double target = integer != nullptr ? static_cast<double>(*integer) : *real;
  const bool written = e.kind == Expression::Kind::kInt || e.kind == Expression::Kind::kFloat;
  if (written && !IsApproximate(target)) return target == *number ? Solve(goal.next) : true;
  return CloseTo(target, *number, tolerance) ? Solve(goal.next) : true;
}

// Whether the edge is the term's output. Sets `position` to the i of the term's operands.
bool Matcher::MatchOutput(const Goal& goal, int* position) {
  const Term& term = *goal.term;
  const Node& node = graph_.node(goal.edge.node);
  *position = goal.position;
  if (term.output_choice != OutputChoice::kEach) return goal.edge.output == term.output;
  *position = -1;
  if (by_element_ && term.index == pattern_.each) {
    each_position_ = goal.edge.output;
  } else if (&term != &pattern_.sources[0] && goal.edge.output != goal.position) {
    return false;
  }
  return Bind(term.node_slot, 0, LabelValue{goal.edge.node}) &&
         BindCount(term.index, static_cast<int>(node.outputs.size()));
}

// Binds or compares plain names at once. Expressions over names wait until the operands are
// matched.
bool Matcher::MatchAttributes(const Goal& goal, const Node& node) {
  for (const AttributeTerm& attribute : goal.term->attributes) {
    const Value value = ToValue(*node.attributes->Find(attribute.name));
    if (attribute.value.kind == Expression::Kind::kVariable) {
      if (!Bind(attribute.value.slot, goal.position, value)) return false;
    } else if (attribute.literal) {
      const auto wanted = Evaluate(attribute.value, {graph_, bindings_, goal.position});
      if (!wanted.has_value() || !SameValue(*wanted, value)) return false;
    }
  }
  return true;
}

bool Matcher::SolveOperator(const Goal& goal) {
  const Term& term = *goal.term;
  const Node& node = graph_.node(goal.edge.node);
  if (term.op_class != 0 ? (Info(node.op).traits & term.op_class) == 0 : node.op != term.op) {
    return true;
  }
  const int each_before = each_position_;
  Goal inner = goal;
  bool go_on = true;
  if (MatchOutput(goal, &inner.position) &&
      (term.slot < 0 || Bind(term.slot, goal.position, goal.edge)) &&
      (term.label_slot < 0 || Bind(term.label_slot, 0, LabelValue{goal.edge.node})) &&
      MatchAttributes(inner, node)) {
    bindings_.nodes.push_back(goal.edge.node);
    go_on = SolveOperands(inner, node);
    bindings_.nodes.pop_back();
  }
  each_position_ = each_before;
  return go_on;
}

bool Matcher::SolveOperands(const Goal& goal, const Node& node) {
  const Term& term = *goal.term;
  const bool spreads = std::any_of(term.operands.begin(), term.operands.end(),
                                   [](const Term& operand) { return operand.spread; });
  if (spreads) {
    std::vector<int> lengths;
    return SolveSpreads(goal, node, 0, &lengths, 0);
  }
  if (term.operands.size() != node.inputs.size()) return true;
  const std::vector<int> ones(term.operands.size(), 1);
  if (!SolveChain(goal, ones, /*swapped=*/false)) return false;
  const bool swaps =
      Has(node.op, kCommutative) && node.inputs.size() == 2 && node.inputs[0] != node.inputs[1];
  return swaps ? SolveChain(goal, ones, /*swapped=*/true) : true;
}

// Chooses how many operands each "t..." takes: all of them together must take every operand. A
// "t..." that is alone takes at least one; with other operands it may take none.
bool Matcher::SolveSpreads(const Goal& goal, const Node& node, size_t operand,
                           std::vector<int>* lengths, size_t used) {
  const auto& operands = goal.term->operands;
  if (operand == operands.size()) {
    return used == node.inputs.size() ? SolveChain(goal, *lengths, /*swapped=*/false) : true;
  }
  const Term& term = operands[operand];
  const int left = static_cast<int>(node.inputs.size() - used);
  int low = 1;
  int high = 1;
  if (term.spread) {
    const int count = bindings_.counts[term.index];
    low = count >= 0 ? count : operands.size() > 1 ? 0 : 1;
    high = count >= 0 ? count : left;
  }
  for (int n = low; n <= std::min(high, left); ++n) {
    const size_t mark = trail_.size();
    lengths->push_back(n);
    const bool fits = !term.spread || BindCount(term.index, n);
    const bool go_on = !fits || SolveSpreads(goal, node, operand + 1, lengths, used + n);
    lengths->pop_back();
    Rewind(mark);
    if (!go_on) return false;
  }
  return true;
}

// Makes the goals of all operands and of the attributes that wait for them.
bool Matcher::SolveChain(const Goal& goal, const std::vector<int>& lengths, bool swapped) {
  const Term& term = *goal.term;
  const Node& node = graph_.node(goal.edge.node);
  absl::InlinedVector<Goal, 6> goals;
  size_t input = 0;
  for (size_t operand = 0; operand < term.operands.size(); ++operand) {
    for (int i = 0; i < lengths[operand]; ++i, ++input) {
      const size_t at = swapped ? 1 - input : input;
      goals.push_back({.term = &term.operands[operand],
                       .edge = node.inputs[at],
                       .position = term.operands[operand].spread ? i : goal.position,
                       .parent = goal.edge.node});
    }
  }
  for (const AttributeTerm& attribute : term.attributes) {
    if (attribute.literal || attribute.value.kind == Expression::Kind::kVariable) continue;
    goals.push_back({.edge = goal.edge, .check = &attribute, .position = goal.position});
  }
  for (size_t i = 0; i < goals.size(); ++i) {
    goals[i].next = i + 1 < goals.size() ? &goals[i + 1] : goal.next;
  }
  return Solve(goals.empty() ? goal.next : &goals[0]);
}

bool Matcher::SolveCheck(const Goal& goal) {
  const AttributeValue* value = graph_.node(goal.edge.node).attributes->Find(goal.check->name);
  const auto wanted = Evaluate(goal.check->value, {graph_, bindings_, goal.position});
  if (!wanted.has_value() || !SameValue(*wanted, ToValue(*value))) return true;
  return Solve(goal.next);
}

// Leaves guards that need all i of an "each" rule to the family search.
bool Matcher::SolveGuards() {
  const size_t mark = trail_.size();
  const bool holds = std::all_of(pattern_.guards.begin(), pattern_.guards.end(),
                                 [&](const Guard& guard) { return Guarded(guard); });
  const bool go_on = !holds || found_(context_, bindings_, each_position_);
  Rewind(mark);
  return go_on;
}

bool Matcher::Guarded(const Guard& guard) {
  if (guard.spreads && by_element_) return true;
  const bool all = guard.per_element && !(by_element_ && guard.index == pattern_.each);
  const int n = all ? bindings_.counts[guard.index] : 1;
  for (int i = 0; i < n; ++i) {
    const Scope scope{graph_, bindings_, guard.per_element ? i : -1};
    if (guard.binds_slot < 0) {
      if (!Holds(guard.value, scope)) return false;
      continue;
    }
    const auto value = Evaluate(guard.value, scope);
    if (!value.has_value() || !Bind(guard.binds_slot, i, *value)) return false;
  }
  return true;
}

}  // namespace ag
