#include "lab/generate/enumerate.h"

#include <algorithm>
#include <map>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "base/digest.h"
#include "graph/hash.h"
#include "graph/reference/evaluate_as.h"
#include "graph/reference/reference.h"
#include "graph/shapes.h"

namespace ag::generate {
namespace {

// Members of a class, besides the representative, with which later members are compared. One may
// have a variable that the representative lacks.
constexpr size_t kMembersMax = 4;

uint64_t HashOf(Residue v) { return v.p; }
uint64_t HashOf(Rational v) {
  return MixIn(static_cast<uint64_t>(v.num), static_cast<uint64_t>(v.den)) ^
         static_cast<uint64_t>(v.num >> 64);
}

// Enumerates terms by level, that is, by their number of distinct operators.
// Always: classes_ maps each fingerprint to one class; all members of a class have equal values in
// every assignment, and its representative was the first one, so it has the fewest operators. Only
// a representative keeps its value and serves as operand. A term of the last level keeps no value,
// because no term uses it; ValueOf computes it again for a comparison.
// Terms of level n have operands whose union has exactly n - 1 operators, so each term comes up at
// one level. It ends because a level has finitely many terms. The time is one evaluation for each
// operator over each tuple of operands; a full comparison follows only where fingerprints agree.
template <class T>
class Enumerator {
 public:
  Enumerator(const Universe& universe, const EnumerateOptions& options)
      : options_(options), table_(std::make_shared<TermTable>()) {
    table_->universe = universe;
  }

  Enumeration Run() {
    AddLeaves();
    for (int n = 1; n <= options_.ops_max && result_.complete; ++n) {
      level_ = n;
      EndLevel();
      for (const OpKind op : table_->universe.ops) Grow(op, nullptr);
      if constexpr (std::is_same_v<T, Residue>) {
        for (const ExtraOperator& extra : options_.extra) Grow(OpKind::kRelu, &extra);
      }
    }
    if (options_.progress) options_.progress(unreported_);
    result_.classes = static_cast<int64_t>(classes_.size());
    std::stable_sort(result_.equations.begin(), result_.equations.end(),
                     [](const Equation& a, const Equation& b) {
                       return OpsOf(*a.table, a.left) + OpsOf(*a.table, a.right) <
                              OpsOf(*b.table, b.left) + OpsOf(*b.table, b.right);
                     });
    return std::move(result_);
  }

 private:
  using Value = std::vector<Array<T>>;  // By assignment.
  using Operands = Ids;
  using Nodes = Ids;

  struct Class {
    TermId representative = -1;
    std::vector<TermId> others;
  };

  int TypeOf(const Shapes& shapes) {
    const auto [found, fresh] = type_ids_.emplace(shapes, static_cast<int>(table_->types.size()));
    if (fresh) table_->types.push_back(shapes);
    return found->second;
  }

  void AddLeaves() {
    for (size_t i = 0; i < table_->universe.leaves.size(); ++i) {
      const Leaf& leaf = table_->universe.leaves[i];
      Term term{.leaf = static_cast<int>(i), .type = TypeOf(leaf.shapes)};
      term.variables = 1u << i;
      Value value;
      for (size_t s = 0; s < leaf.shapes.size(); ++s) {
        const TensorType type{DType::kFloat64, leaf.shapes[s]};
        value.push_back(RandomArray<T>(type, Mix(options_.seed * 1000 + i * 10 + s)));
      }
      Keep(std::move(term), std::move(value));
    }
  }

  // ---- Operands.

  void EndLevel() {
    const size_t begin = ends_.empty() ? 0 : ends_.back();
    ends_.push_back(table_->terms.size());
    readers_.resize(static_cast<size_t>(nodes_));
    for (size_t id = begin; id < table_->terms.size(); ++id) {
      if (values_[id].empty()) continue;
      for (const int32_t node : table_->terms[id].nodes) {
        readers_[static_cast<size_t>(node)].push_back(static_cast<TermId>(id));
      }
    }
  }

  static Nodes Union(const Nodes& a, const Nodes& b) {
    std::array<int32_t, 2 * kOpsMax> both;
    const auto end = std::set_union(a.begin(), a.end(), b.begin(), b.end(), both.begin());
    Nodes all;  // A union that is too large stays too large when it is cut off.
    for (auto id = both.begin(); id != end && all.size() < kOpsMax; ++id) all.push_back(*id);
    return all;
  }

  // Calls `visit` with each representative that makes `nodes` grow to at most level - 1 operators;
  // with the last operand, to exactly so many.
  template <class Visit>
  void ForPartners(const Nodes& nodes, bool last, const Visit& visit) {
    const int room = level_ - 1 - static_cast<int>(nodes.size());
    for (int level = last ? room : 0; level <= room; ++level) {
      const size_t begin = level == 0 ? 0 : ends_[static_cast<size_t>(level) - 1];
      const size_t end = ends_[static_cast<size_t>(level)];
      for (size_t id = begin; id < end; ++id) {
        const auto term = static_cast<TermId>(id);
        if (values_[id].empty()) continue;  // It joined the class of another term.
        const Nodes all = Union(nodes, table_->term(term).nodes);
        if (!last || static_cast<int>(all.size()) == level_ - 1) visit(term, all);
      }
    }
    VisitSharers(nodes, room, last, visit);
  }

  // Visits terms larger than the room left, which fit because they share operators with `nodes`.
  template <class Visit>
  void VisitSharers(const Nodes& nodes, int room, bool last, const Visit& visit) {
    for (size_t i = 0; i < nodes.size(); ++i) {
      for (const TermId term : readers_[static_cast<size_t>(nodes[i])]) {
        const Nodes& theirs = table_->term(term).nodes;
        if (static_cast<int>(theirs.size()) <= room) continue;
        const auto shared_before = [&](int32_t node) {
          return std::find(theirs.begin(), theirs.end(), node) != theirs.end();
        };
        const auto first = nodes.begin();
        if (std::any_of(first, first + static_cast<std::ptrdiff_t>(i), shared_before)) continue;
        const Nodes all = Union(nodes, theirs);
        const int count = static_cast<int>(all.size());
        if (count == level_ - 1 || (!last && count < level_)) visit(term, all);
      }
    }
  }

  void Grow(OpKind op, const ExtraOperator* extra) {
    const int arity = extra != nullptr                               ? extra->arity
                      : op == OpKind::kConcat || op == OpKind::kConv ? 2
                                                                     : Info(op).arity_min;
    Operands operands;
    Choose(op, extra, arity, {}, &operands);
  }

  void Choose(OpKind op, const ExtraOperator* extra, int arity, const Nodes& nodes,
              Operands* operands) {
    if (!result_.complete) return;
    const bool last = static_cast<int>(operands->size()) + 1 == arity;
    ForPartners(nodes, last, [&](TermId term, const Nodes& all) {
      if (extra == nullptr && last && arity == 2 && Has(op, kCommutative) &&
          term < operands->back()) {
        return;
      }
      if (op == OpKind::kConv && !ConvFits(term, *operands)) return;
      operands->push_back(term);
      if (last) {
        Apply(op, extra, *operands, all);
      } else {
        Choose(op, extra, arity, all, operands);
      }
      operands->pop_back();
    });
  }

  // Whether a convolution may have the operand: of rank 4, and without common leaves with the
  // others, which no network has, except one tensor as both operands.
  bool ConvFits(TermId term, const Operands& before) const {
    if (table_->shapes(term)[0].size() != 4) return false;
    return std::none_of(before.begin(), before.end(), [&](TermId other) {
      return other != term && (table_->term(other).variables & table_->term(term).variables) != 0;
    });
  }

  // ---- Calls, made once for each operator and operand types.

  using CallKey = absl::InlinedVector<uint64_t, 6>;  // The operator, and a type for each operand.

  const std::vector<int>& CallsOf(OpKind op, const ExtraOperator* extra, const Operands& operands) {
    CallKey key = {static_cast<uint64_t>(op), reinterpret_cast<uintptr_t>(extra)};
    for (const TermId operand : operands) {
      key.push_back(static_cast<uint64_t>(table_->term(operand).type));
    }
    const auto [found, fresh] = calls_.try_emplace(key);
    if (fresh) found->second = MakeCalls(op, extra, operands);
    return found->second;
  }

  std::vector<int> MakeCalls(OpKind op, const ExtraOperator* extra, const Operands& operands) {
    std::vector<const Shapes*> shapes;
    for (const TermId operand : operands) shapes.push_back(&table_->shapes(operand));
    std::vector<int> made;
    if (extra != nullptr) {
      const bool same = shapes.size() == 1 || *shapes[0] == *shapes[1];
      if (!same) return made;
      made.push_back(static_cast<int>(table_->calls.size()));
      table_->calls.push_back({.extra = extra, .types = {TypeOf(*shapes[0])}});
      return made;
    }
    const Shapes bias = op == OpKind::kConv ? BiasOf(*shapes[1]) : Shapes();
    if (!bias.empty()) shapes.push_back(&bias);
    for (const auto& attributes : AttributeGrid(op, shapes, table_->universe)) {
      Call call{.op = op};
      if (!Complete(attributes, shapes, &call)) continue;
      made.push_back(static_cast<int>(table_->calls.size()));
      table_->calls.push_back(std::move(call));
    }
    return made;
  }

  static Shapes BiasOf(const Shapes& kernel) {
    Shapes bias;
    for (const Shape& shape : kernel) bias.push_back({shape[0]});
    return bias;
  }

  bool Complete(const std::vector<Attributes>& attributes, const std::vector<const Shapes*>& shapes,
                Call* call) {
    std::vector<Shapes> outputs;
    for (size_t s = 0; s < attributes.size(); ++s) {
      std::vector<TensorType> types;
      for (const Shapes* operand : shapes) types.push_back({DType::kFloat64, (*operand)[s]});
      Attributes full = attributes[s];
      if (!CompleteAttributes(call->op, types, &full).ok()) return false;
      const auto inferred = InferTypes(call->op, types, full);
      if (!inferred.ok()) return false;
      outputs.resize(inferred->size());
      Node& node = call->nodes.emplace_back();
      node.op = call->op;
      node.SetFacts({std::make_shared<const Attributes>(std::move(full)), *inferred});
      for (size_t o = 0; o < inferred->size(); ++o) {
        if ((*inferred)[o].NumElements() > table_->universe.elements_max) return false;
        outputs[o].push_back((*inferred)[o].shape);
      }
      call->operands.push_back(std::move(types));
    }
    for (const Shapes& output : outputs) call->types.push_back(TypeOf(output));
    return true;
  }

  // ---- Values.

  // Returns the values by output; empty: they cannot be computed exactly.
  std::vector<Value> Evaluate(const Call& call, const Operands& operands) {
    if constexpr (std::is_same_v<T, Residue>) {
      if (call.extra != nullptr) return {EvaluateExtra(*call.extra, operands)};
    }
    std::vector<Value> outputs(call.types.size());
    for (size_t s = 0; s < call.nodes.size(); ++s) {
      absl::InlinedVector<const Array<T>*, 4> inputs;
      absl::InlinedVector<const TensorType*, 4> types;
      for (const TensorType& type : call.operands[s]) types.push_back(&type);
      for (const TermId operand : operands) {
        inputs.push_back(&values_[static_cast<size_t>(operand)][s]);
      }
      const Array<T> zeros(types.back()->shape);  // A bias.
      if (inputs.size() < types.size()) inputs.push_back(&zeros);
      auto computed =
          KernelOf<T>(call.op)({.node = call.nodes[s], .types = types, .inputs = inputs});
      if (!computed.ok()) return {};
      for (size_t o = 0; o < outputs.size(); ++o) outputs[o].push_back(std::move((*computed)[o]));
    }
    return outputs;
  }

  Value EvaluateExtra(const ExtraOperator& extra, const Operands& operands) {
    Value value;
    for (size_t s = 0; s < table_->universe.assignments(); ++s) {
      const Array<T>& x = values_[static_cast<size_t>(operands[0])][s];
      const Array<T>& y = values_[static_cast<size_t>(operands.back())][s];
      Array<T> out(x.shape);
      for (size_t i = 0; i < out.values.size(); ++i) {
        out.values[i] = extra.call(x.values[i], extra.arity == 1 ? T{} : y.values[i]);
      }
      value.push_back(std::move(out));
    }
    return value;
  }

  // Returns false for a useless value: poisoned, or zero everywhere, as differences of equal terms
  // are.
  static bool Fingerprint(int type, const Value& value, uint64_t* fingerprint) {
    uint64_t hash = Mix(static_cast<uint64_t>(type));
    bool zero = true;
    for (const Array<T>& array : value) {
      for (const T& v : array.values) {
        if (Scalar<T>::Poisoned(v)) return false;
        zero = zero && v == T{};
        hash = MixIn(hash, HashOf(v));
      }
    }
    *fingerprint = hash;
    return !zero;
  }

  static bool Same(const Value& a, const Value& b) {
    for (size_t s = 0; s < a.size(); ++s) {
      if (a[s].shape != b[s].shape || !std::equal(a[s].values.begin(), a[s].values.end(),
                                                  b[s].values.begin(), b[s].values.end())) {
        return false;
      }
    }
    return true;
  }

  // Returns the value of a term; computes it again when it is not kept.
  Value ValueOf(TermId id) {
    const Value& held = values_[static_cast<size_t>(id)];
    if (!held.empty()) return held;
    const Term& term = table_->term(id);
    return Evaluate(table_->call(term), term.operands)[static_cast<size_t>(term.output)];
  }

  // ---- One operator over chosen operands.

  void Apply(OpKind op, const ExtraOperator* extra, const Operands& operands, const Nodes& below) {
    const std::vector<int>& calls = CallsOf(op, extra, operands);
    for (const int id : calls) {
      std::vector<Value> values = Evaluate(table_->calls[static_cast<size_t>(id)], operands);
      CountGraph();
      if (values.empty()) continue;
      Nodes nodes = below;
      nodes.push_back(nodes_++);
      std::vector<TermId> made, equal;
      for (size_t o = 0; o < values.size(); ++o) {
        Term term{.call = id,
                  .output = static_cast<int>(o),
                  .type = table_->calls[static_cast<size_t>(id)].types[o],
                  .operands = operands,
                  .nodes = nodes};
        for (const TermId operand : operands) term.variables |= table_->term(operand).variables;
        TermId same = -1;
        const TermId fresh = Settle(std::move(term), std::move(values[o]), &same);
        made.push_back(fresh);
        if (same >= 0) equal.push_back(same);
      }
      if (made.size() > 1 && equal.size() == made.size()) JoinRoots(equal, made);
    }
  }

  void CountGraph() {
    ++result_.graphs;
    if (++unreported_ < 4096) return;
    if (options_.progress) options_.progress(unreported_);
    unreported_ = 0;
    if ((options_.stop && options_.stop()) || bytes_ > options_.bytes_max) {
      result_.complete = false;
    }
  }

  // Puts a term into its class. Sets `same` to the equal term there, if there is one. Returns -1:
  // the term is useless.
  TermId Settle(Term term, Value value, TermId* same) {
    uint64_t fingerprint = 0;
    if (!Fingerprint(term.type, value, &fingerprint)) return -1;
    // A fingerprint that collides takes the next free one.
    for (;; ++fingerprint) {
      const auto found = classes_.find(fingerprint);
      if (found == classes_.end()) break;
      const TermId known = found->second.representative;
      if (table_->term(known).type != term.type || !Same(value, ValueOf(known))) continue;
      *same = known;
      return Join(std::move(term), &found->second);
    }
    return Keep(std::move(term), std::move(value), fingerprint);
  }

  TermId Keep(Term term, Value value, uint64_t fingerprint) {
    const auto id = static_cast<TermId>(table_->terms.size());
    const bool evict = static_cast<int>(term.nodes.size()) >= options_.ops_max;
    bytes_ += static_cast<int64_t>(sizeof(Term) + sizeof(Value) + 32);
    for (const Array<T>& array : value) {
      if (!evict) bytes_ += static_cast<int64_t>(array.values.size() * sizeof(T) + 64);
    }
    result_.bytes = std::max(result_.bytes, bytes_);
    table_->terms.push_back(std::move(term));
    values_.push_back(evict ? Value() : std::move(value));
    classes_[fingerprint].representative = id;
    return id;
  }

  void Keep(Term term, Value value) {
    uint64_t fingerprint = 0;
    const bool useful = Fingerprint(term.type, value, &fingerprint);
    if (!useful) fingerprint = Mix(table_->terms.size());
    Keep(std::move(term), std::move(value), fingerprint);
  }

  // Adds a term to a class, without its value. The term stays in the table only if something needs
  // it.
  TermId Join(Term term, Class* members) {
    const auto id = static_cast<TermId>(table_->terms.size());
    table_->terms.push_back(std::move(term));
    values_.emplace_back();
    const uint32_t mine = table_->term(id).variables;
    const bool single = table_->call(table_->term(id)).types.size() == 1;
    bool said = false;
    const auto try_with = [&](TermId other) {
      const uint32_t theirs = table_->term(other).variables;
      if ((mine & theirs) != mine && (mine & theirs) != theirs) return false;
      said = AddEquation({other}, {id});
      return true;
    };
    if (!try_with(members->representative)) {
      for (const TermId other : members->others) {
        if (try_with(other)) break;
      }
    }
    if (members->others.size() < kMembersMax) {
      members->others.push_back(id);
    } else if (!said && single) {
      table_->terms.pop_back();
      values_.pop_back();
    }
    return id;
  }

  bool AddEquation(std::vector<TermId> left, std::vector<TermId> right) {
    if (!equations_.insert(RenamedHash(*table_, left, right)).second) return false;
    if (left.size() == 1) {
      CutRoots(left[0], right[0]);
      CutRoots(right[0], left[0]);
    }
    result_.equations.push_back({table_, std::move(left), std::move(right)});
    return true;
  }

  // Adds the equation of parts that concat(s, t) = u implies: s and t are the parts of u. These
  // parts are not enumerated when u has the most operators allowed, and they need no comparison.
  void CutRoots(TermId joined, TermId whole) {
    const Term concat = table_->term(joined);
    if (concat.call < 0 || table_->call(concat).op != OpKind::kConcat ||
        table_->call(concat).extra != nullptr || table_->term(whole).nodes.size() >= kOpsMax) {
      return;
    }
    if (table_->term(whole).call < 0 || table_->call(table_->term(whole)).op == OpKind::kConcat) {
      return;
    }
    const TermId s = concat.operands[0], t = concat.operands[1];
    const uint32_t all = table_->term(s).variables | table_->term(t).variables;
    const bool bound = table_->term(s).variables == all && table_->term(t).variables == all;
    const bool hang_together = (table_->term(s).variables & table_->term(t).variables) != 0;
    const bool operators = table_->term(s).call >= 0 && table_->term(t).call >= 0;
    if (bound || !hang_together || !operators || s == t) return;
    if (table_->term(whole).variables != all) return;
    std::vector<Attributes> attributes;
    const int64_t axis = table_->call(concat).nodes[0].attributes->Int("axis");
    const auto at = static_cast<size_t>(axis);
    for (size_t a = 0; a < table_->universe.assignments(); ++a) {
      attributes.push_back(
          {{"axis", axis}, {"sizes", Ints{table_->shapes(s)[a][at], table_->shapes(t)[a][at]}}});
    }
    Call call{.op = OpKind::kSplit};
    if (!Complete(attributes, {&table_->shapes(whole)}, &call)) return;
    const auto id = static_cast<int>(table_->calls.size());
    table_->calls.push_back(std::move(call));
    Term part = table_->term(whole);
    part.call = id;
    part.operands = Ids();
    part.operands.push_back(whole);
    part.nodes.push_back(nodes_++);
    std::vector<TermId> parts;
    for (int output = 0; output < 2; ++output) {
      part.output = output;
      part.type = table_->calls[static_cast<size_t>(id)].types[static_cast<size_t>(output)];
      parts.push_back(static_cast<TermId>(table_->terms.size()));
      table_->terms.push_back(part);
      values_.emplace_back();
    }
    AddEquation({s, t}, parts);
  }

  // Adds the equation of several roots: all outputs of an operator have equal, smaller terms,
  // `known`.
  void JoinRoots(const std::vector<TermId>& known, const std::vector<TermId>& outputs) {
    const uint32_t left = VariablesOf(*table_, known), right = VariablesOf(*table_, outputs);
    if (left != right) return;
    // The parts of a concat are its operands, and an output that equals a leaf gives nothing new.
    const Term& whole = table_->term(table_->term(outputs[0]).operands[0]);
    if (whole.call < 0 || table_->call(whole).op == OpKind::kConcat) return;
    for (const TermId root : known) {
      if (table_->term(root).call < 0) return;
    }
    bool bound = true;  // Then each output alone is a rule already.
    for (size_t i = 0; i < known.size(); ++i) {
      bound = bound && table_->term(known[i]).variables == right;
    }
    const uint32_t shared = table_->term(known[0]).variables & table_->term(known[1]).variables;
    if (!bound && shared != 0) AddEquation(known, outputs);
  }

  const EnumerateOptions& options_;
  std::shared_ptr<TermTable> table_;
  Enumeration result_;
  int level_ = 0;
  int32_t nodes_ = 0;
  int64_t bytes_ = 0;
  int64_t unreported_ = 0;
  std::vector<size_t> ends_;                  // By level: the end of its terms in the table.
  std::vector<Value> values_;                 // By term; empty: not kept.
  std::vector<std::vector<TermId>> readers_;  // By operator node: the terms with it.
  std::map<Shapes, int> type_ids_;
  absl::flat_hash_map<CallKey, std::vector<int>> calls_;
  absl::flat_hash_map<uint64_t, Class> classes_;
  absl::flat_hash_set<uint64_t> equations_;
};

}  // namespace

Enumeration Enumerate(const Universe& universe, const EnumerateOptions& options) {
  if (universe.rationals) return Enumerator<Rational>(universe, options).Run();
  return Enumerator<Residue>(universe, options).Run();
}

}  // namespace ag::generate
