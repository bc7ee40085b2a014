#include "rules/verify/instance.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "graph/tensor.h"

namespace ag {
namespace {

// Collects the slots that a guard wants constant; "const(x) == 0" wants none.
void ConstantSlots(const Expression& guard, std::set<int>* slots) {
  if (guard.kind == Expression::Kind::kCall && guard.name == "const") {
    slots->insert(guard.arguments[0].slot);
  }
}

// The operators of a class that are sampled most often, one for each kind of behaviour; now and
// then any other of the table is sampled. `Not` is sampled only where a Boolean is wanted.
constexpr OpKind kUnaryOps[] = {OpKind::kRelu,       OpKind::kTanh, OpKind::kSigmoid,
                                OpKind::kLeakyRelu,  OpKind::kNeg,  OpKind::kAbs,
                                OpKind::kReciprocal, OpKind::kExp,  OpKind::kHardSwish};
constexpr OpKind kZeroOps[] = {OpKind::kRelu, OpKind::kTanh, OpKind::kNeg, OpKind::kLeakyRelu};
constexpr OpKind kBinaryOps[] = {OpKind::kAdd, OpKind::kSub, OpKind::kMul,
                                 OpKind::kMax, OpKind::kMin, OpKind::kDiv};

std::vector<OpKind> AllWith(uint32_t trait) {
  std::vector<OpKind> ops;
  for (const OpInfo& info : AllOps()) {
    if ((info.traits & trait) != 0) ops.push_back(info.kind);
  }
  return ops;
}

class Sampler {
 public:
  Sampler(const RulePattern& pattern, Choices* choices, const SampleOptions& options)
      : pattern_(pattern), sample_(choices, options.size), drift_(options.drift) {
    bindings_.slots.resize(pattern.slots.size());
    bindings_.counts.assign(pattern.indices.size(), -1);
    for (const Guard& guard : pattern.guards) ConstantSlots(guard.value, &constant_slots_);
  }

  std::optional<Graph> Run() {
    for (int& count : bindings_.counts) {
      count = static_cast<int>(sample_.random().Between(sample_.Chance(60) ? 2 : 1, 4));
    }
    if (pattern_.each >= 0) bindings_.counts[pattern_.each] = sample_.Chance(35) ? 3 : 2;
    if (sample_.Chance(8)) dtype_ = DType::kInt64;
    for (const Term& source : pattern_.sources) {
      const int n = pattern_.each >= 0 ? bindings_.counts[pattern_.each] : 1;
      for (int i = 0; i < n; ++i) {
        const auto root = Make(source, pattern_.each >= 0 ? i : -1, {std::nullopt, dtype_});
        if (!root.has_value()) return std::nullopt;
        builder_.Output(*root, fmt::format("o{}", outputs_++));
      }
    }
    if (sample_.Chance(10) && !made_.empty()) {  // An inner value gets a reader outside.
      const Edge inner = made_[sample_.random().Below(made_.size())];
      builder_.Output(inner, fmt::format("o{}", outputs_++));
    }
    StatusOr<Graph> graph = builder_.Build();
    if (!graph.ok()) return std::nullopt;
    return *std::move(graph);
  }

 private:
  using MaybeEdge = std::optional<Edge>;
  struct Want {
    std::optional<Shape> shape;
    DType dtype;
  };

  Value* Slot(int slot, int position) {
    auto& values = bindings_.slots[slot];
    const size_t at =
        pattern_.slots[slot].index < 0 ? 0 : static_cast<size_t>(std::max(position, 0));
    if (values.size() <= at) values.resize(at + 1);
    return &values[at];
  }

  Scope ScopeAt(int position) const { return {TensorFacts(builder_), bindings_, position}; }

  MaybeEdge Make(const Term& term, int position, const Want& want) {
    switch (term.kind) {
      case Term::Kind::kVariable:
        return MakeLeaf(term, position, want);
      case Term::Kind::kScalar:
        return MakeScalar(term, position);
      case Term::Kind::kOperator:
        return MakeOperator(term, position, want);
    }
    return std::nullopt;
  }

  MaybeEdge MakeLeaf(const Term& term, int position, const Want& want) {
    Value* value = Slot(term.slot, position);
    if (IsBound(*value)) return std::get<Edge>(*value);
    const TensorType type{want.dtype, want.shape ? *want.shape : sample_.AnyShape(0)};
    const bool constant = constant_slots_.contains(term.slot) || sample_.Chance(12);
    Edge edge;
    if (constant) {
      const std::string name = fmt::format("constant {}", leaves_);
      edge = builder_.Constant(type, Sha256(name));
    } else {
      edge = builder_.Input(fmt::format("x{}", leaves_), type);
    }
    ++leaves_;
    *value = edge;
    return edge;
  }

  MaybeEdge MakeScalar(const Term& term, int position) {
    const Expression& e = term.scalar;
    if (e.kind == Expression::Kind::kVariable && !IsBound(*Slot(e.slot, position))) {
      *Slot(e.slot, position) = sample_.Chance(50) ? 0.25 : 2.0;
    }
    const auto value = Evaluate(e, ScopeAt(position));
    if (!value.has_value()) return std::nullopt;
    const auto* integer = std::get_if<int64_t>(&*value);
    const auto* real = std::get_if<double>(&*value);
    if (integer == nullptr && real == nullptr) return std::nullopt;
    Tensor tensor = Tensor::Zeros({DType::kFloat64, {}});
    tensor.Put(0, integer != nullptr ? static_cast<double>(*integer) : Drifted(*real));
    return builder_.Constant(tensor.type(), tensor.Name(), tensor.bytes());
  }

  // Returns a float constant of the rule as another exporter may have rounded it.
  double Drifted(double value) {
    if (drift_ == 0 || !IsApproximate(value)) return value;
    return value * (1 + (sample_.Chance(50) ? drift_ : -drift_));
  }

  OpKind ChooseOp(const Term& term, DType want) {
    if (term.op_class == 0) return term.op;
    if (term.label_slot >= 0 && IsBound(*Slot(term.label_slot, 0))) {
      return builder_.node(std::get<LabelValue>(*Slot(term.label_slot, 0)).node).op;
    }
    const auto pick = [&](const auto& ops) { return ops[sample_.random().Below(std::size(ops))]; };
    if (want == DType::kBool && term.op_class == kUnary) return OpKind::kNot;
    if (term.op_class == kReduction) return pick(AllWith(kReduction));
    if (want == DType::kBool || sample_.Chance(30)) return pick(AllWith(term.op_class));
    if (term.op_class == kBinary) return pick(kBinaryOps);
    if (term.op_class == kZeroToZero) return pick(kZeroOps);
    return term.op_class == kUnary ? pick(kUnaryOps) : pick(AllWith(term.op_class));
  }

  // Returns the existing node of op(...)[i]: one node serves all i.
  MaybeEdge MadeBefore(const Term& term, int position) {
    if (term.node_slot < 0 || !IsBound(*Slot(term.node_slot, 0))) return std::nullopt;
    return Edge{std::get<LabelValue>(*Slot(term.node_slot, 0)).node, position};
  }

  MaybeEdge MakeOperator(const Term& term, int outer, const Want& want) {
    if (const MaybeEdge made = MadeBefore(term, outer)) return Exists(*made) ? made : std::nullopt;
    const int position = term.output_choice == OutputChoice::kEach ? -1 : outer;
    OperatorDraft draft{
        .op = ChooseOp(term, want.dtype), .want = want.shape, .want_dtype = want.dtype};
    draft.outputs =
        term.output_choice == OutputChoice::kEach ? bindings_.counts[term.index] : term.output + 1;
    // Other terms may name other outputs of an equal split.
    if (term.output_choice == OutputChoice::kLiteral && draft.outputs == 1 && sample_.Chance(80)) {
      draft.outputs = 2;
    }
    KnownAttributes(term, position, &draft);
    const auto operands = MakeOperands(term, position, &draft);
    if (!operands.has_value()) return std::nullopt;
    KnownAttributes(term, position, &draft);
    sample_.LateAttributes(&draft);
    const StatusOr<NodeId> node = builder_.Add(draft.op, *operands, draft.attributes);
    if (!node.ok()) return std::nullopt;
    Edge edge{*node, term.output};
    if (term.output_choice == OutputChoice::kEach) edge.output = outer;
    if (!Exists(edge)) return std::nullopt;
    if (!BindOperator(term, position, outer, edge)) return std::nullopt;
    if (!SmallEnough(edge)) return std::nullopt;
    made_.push_back(edge);
    return edge;
  }

  bool Exists(Edge edge) const {
    return edge.output < static_cast<int>(builder_.node(edge.node).outputs.size());
  }

  bool SmallEnough(Edge edge) const { return builder_.type(edge).NumElements() <= 4096; }

  // Sets attributes from the label, from an expression that has a value, or from a bound name.
  void KnownAttributes(const Term& term, int position, OperatorDraft* draft) {
    if (term.label_slot >= 0 && IsBound(*Slot(term.label_slot, 0))) {
      draft->attributes =
          *builder_.node(std::get<LabelValue>(*Slot(term.label_slot, 0)).node).attributes;
    }
    for (const AttributeTerm& attribute : term.attributes) {
      const auto value = Evaluate(attribute.value, ScopeAt(position));
      auto typed =
          value.has_value() ? ToAttribute(*value, draft->op, attribute.name) : std::nullopt;
      const auto* axis = typed.has_value() ? std::get_if<int64_t>(&*typed) : nullptr;
      // Shapes grow until they have the axis; an axis that no tensor has is left to chance.
      if (attribute.name == "axis" && axis != nullptr && (*axis < 0 || *axis > 8)) continue;
      double* real = typed.has_value() ? std::get_if<double>(&*typed) : nullptr;
      if (real != nullptr && attribute.literal) *real = Drifted(*real);
      if (typed.has_value()) draft->attributes.Set(attribute.name, *std::move(typed));
    }
  }

  // Returns the shape of an operand that exists already.
  std::optional<Shape> Peek(const Term& term, int position) {
    if (term.slot < 0) return std::nullopt;
    const Value& value = *Slot(term.slot, position);
    if (!IsBound(value)) return std::nullopt;
    return builder_.type(std::get<Edge>(value)).shape;
  }

  std::optional<std::vector<Edge>> MakeOperands(const Term& term, int position,
                                                OperatorDraft* draft) {
    std::vector<std::pair<const Term*, int>> places;
    for (const Term& operand : term.operands) {
      const int n = operand.spread ? bindings_.counts[operand.index] : 1;
      for (int i = 0; i < n; ++i) places.emplace_back(&operand, operand.spread ? i : position);
    }
    for (const auto& [operand, at] : places) draft->operands.push_back(Peek(*operand, at));
    sample_.EarlyAttributes(draft);
    std::vector<Edge> edges(places.size());
    for (size_t i = 0; i < places.size(); ++i) {
      const auto& [operand, at] = places[i];
      const DType dtype = ShapeSampler::OperandType(draft->op, i, draft->want_dtype);
      const MaybeEdge edge = Make(*operand, at, {sample_.Operand(*draft, i), dtype});
      if (!edge.has_value()) return std::nullopt;
      edges[i] = *edge;
      if (operand->kind != Term::Kind::kScalar) draft->operands[i] = builder_.type(*edge).shape;
    }
    if (edges.size() == 2 && Has(draft->op, kCommutative) && sample_.Chance(25)) {
      std::swap(edges[0], edges[1]);
    }
    return edges;
  }

  // Binds the term's own name and attribute names to the sampled values; returns false when they
  // disagree.
  bool BindOperator(const Term& term, int position, int outer, Edge edge) {
    const auto bind = [&](int slot, int at, const Value& value) {
      Value* bound = Slot(slot, at);
      if (!IsBound(*bound)) *bound = value;
      return SameValue(*bound, value);
    };
    if (term.slot >= 0 && !bind(term.slot, outer, edge)) return false;
    if (term.node_slot >= 0) *Slot(term.node_slot, 0) = LabelValue{edge.node};
    if (term.label_slot >= 0) *Slot(term.label_slot, 0) = LabelValue{edge.node};
    for (const AttributeTerm& attribute : term.attributes) {
      if (attribute.value.kind != Expression::Kind::kVariable) continue;
      const Value value = ToValue(*builder_.node(edge.node).attributes->Find(attribute.name));
      if (!bind(attribute.value.slot, position, value)) return false;
    }
    return true;
  }

  const RulePattern& pattern_;
  ShapeSampler sample_;
  GraphBuilder builder_;
  Bindings bindings_;
  std::set<int> constant_slots_;
  std::vector<Edge> made_;
  const double drift_;
  DType dtype_ = DType::kFloat64;
  int leaves_ = 0;
  int outputs_ = 0;
};

}  // namespace

std::optional<Instance> SampleInstance(const RulePattern& pattern, Choices* choices,
                                       const SampleOptions& options) {
  std::optional<Graph> graph = Sampler(pattern, choices, options).Run();
  if (!graph.has_value()) return std::nullopt;
  Instance instance;
  for (const Node& node : graph->nodes()) {
    for (const TensorType& type : node.outputs) instance.elements += type.NumElements();
  }
  instance.graph = *std::move(graph);
  return instance;
}

std::optional<Instance> SampleInstance(const RulePattern& pattern, uint64_t seed, int size) {
  Choices choices(seed);
  return SampleInstance(pattern, &choices, {.size = size});
}

namespace {

bool HasApproximateNumber(const Term& term) {
  const auto approximate = [](const Expression& e) {
    return e.kind == Expression::Kind::kFloat && IsApproximate(e.number);
  };
  if (term.kind == Term::Kind::kScalar && approximate(term.scalar)) return true;
  return std::any_of(term.attributes.begin(), term.attributes.end(),
                     [&](const AttributeTerm& a) { return approximate(a.value); }) ||
         std::any_of(term.operands.begin(), term.operands.end(), HasApproximateNumber);
}

}  // namespace

bool HasApproximateConstants(const RulePattern& pattern) {
  return std::any_of(pattern.sources.begin(), pattern.sources.end(), HasApproximateNumber);
}

}  // namespace ag
