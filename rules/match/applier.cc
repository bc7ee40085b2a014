#include "rules/match/applier.h"

#include <map>
#include <optional>

#include "graph/tensor.h"

namespace ag {
namespace {

Status NotHere(std::string_view what) { return Err(StatusCode::kFailedPrecondition, "{}", what); }

// `Builder` is GraphBuilder or GraphPatch.
template <class Builder>
class Applier {
 public:
  Applier(Builder* builder, const Graph& graph, const RulePattern& pattern,
          const Bindings& bindings)
      : builder_(*builder), graph_(graph), pattern_(pattern), bindings_(bindings) {}

  Status Run() {
    std::vector<std::pair<Edge, Edge>> replacements;
    for (size_t r = 0; r < pattern_.targets.size(); ++r) {
      for (size_t i = 0; i < bindings_.roots[r].size(); ++i) {
        const int position = pattern_.each >= 0 ? static_cast<int>(i) : -1;
        AG_LET(const Edge to, Make(pattern_.targets[r], position));
        replacements.emplace_back(bindings_.roots[r][i], to);
      }
    }
    for (const auto& [from, to] : replacements) {
      if (builder_.type(from) == builder_.type(to)) continue;
      return Err(StatusCode::kFailedPrecondition, "the target has type {}, not {}",
                 builder_.type(to).ToString(), builder_.type(from).ToString());
    }
    for (const auto& [from, to] : replacements) {
      if (from != to) AG_TRY(builder_.Replace(from, to));
    }
    return OkStatus();
  }

 private:
  StatusOr<Edge> Make(const Term& term, int position) {
    if (term.kind == Term::Kind::kOperator) return MakeOperator(term, position);
    if (term.kind == Term::Kind::kScalar) return NotHere("a number stands where no type is known");
    const Value& value = bindings_.At(term.slot, term.indexed ? position : 0);
    if (IsBound(value)) return std::get<Edge>(value);
    const auto named = named_.find({term.slot, term.indexed ? position : 0});
    if (named == named_.end()) return NotHere("a variable has no value");
    return named->second;
  }

  StatusOr<Edge> MakeOperator(const Term& term, int outer) {
    const int position = term.output_choice == OutputChoice::kEach ? -1 : outer;
    AG_LET(const std::vector<Edge> operands, MakeOperands(term, position));
    AG_LET(const Attributes attributes, MakeAttributes(term, position));
    AG_LET(const NodeId node, Add(OpOf(term), operands, attributes));
    Edge edge{node, term.output};
    const int outputs = static_cast<int>(builder_.node(node).outputs.size());
    if (term.output_choice == OutputChoice::kEach) {
      if (outputs != bindings_.counts[term.index]) return NotHere("another number of outputs");
      edge.output = outer;
    }
    if (edge.output >= outputs) return NotHere("there is no such output");
    if (term.slot >= 0) named_[{term.slot, term.indexed ? outer : 0}] = edge;
    return edge;
  }

  OpKind OpOf(const Term& term) const {
    if (term.op_class == 0) return term.op;
    return graph_.node(std::get<LabelValue>(bindings_.At(term.label_slot, 0)).node).op;
  }

  StatusOr<std::vector<Edge>> MakeOperands(const Term& term, int position) {
    std::vector<Edge> operands;
    std::vector<std::pair<size_t, double>> scalars;  // Typed after the others are known.
    for (const Term& operand : term.operands) {
      const int n = operand.spread ? bindings_.counts[operand.index] : 1;
      for (int i = 0; i < n; ++i) {
        const int at = operand.spread ? i : position;
        if (operand.kind == Term::Kind::kScalar) {
          AG_LET(const double number, Number(operand.scalar, at));
          scalars.emplace_back(operands.size(), number);
          operands.emplace_back();
        } else {
          AG_LET(const Edge edge, Make(operand, at));
          operands.push_back(edge);
        }
      }
    }
    // Without another operand it gets the element type of the replaced root.
    const bool alone = scalars.size() == operands.size();
    for (const auto& [at, number] : scalars) {
      const Edge like = alone ? bindings_.roots[0][0] : operands[at == 0 ? 1 : 0];
      operands[at] = MakeScalar(number, builder_.type(like).dtype);
    }
    return operands;
  }

  StatusOr<double> Number(const Expression& e, int position) const {
    const auto value = Evaluate(e, {graph_, bindings_, position});
    if (value.has_value()) {
      if (const auto* integer = std::get_if<int64_t>(&*value)) return static_cast<double>(*integer);
      if (const auto* real = std::get_if<double>(&*value)) return *real;
    }
    return NotHere("a number has no value here");
  }

  Edge MakeScalar(double number, DType dtype) {
    Tensor tensor = Tensor::Zeros({dtype, {}});
    tensor.Put(0, number);
    return builder_.Constant(tensor.type(), tensor.Name(), tensor.bytes());
  }

  StatusOr<Attributes> MakeAttributes(const Term& term, int position) const {
    Attributes attributes;
    if (term.label_slot >= 0) {
      const auto label = std::get<LabelValue>(bindings_.At(term.label_slot, 0));
      attributes = *graph_.node(label.node).attributes;
    }
    for (const AttributeTerm& attribute : term.attributes) {
      const auto value = Evaluate(attribute.value, {graph_, bindings_, position});
      auto typed =
          value.has_value() ? ToAttribute(*value, OpOf(term), attribute.name) : std::nullopt;
      if (!typed.has_value()) return NotHere(fmt::format("{} has no value here", attribute.name));
      attributes.Set(attribute.name, *std::move(typed));
    }
    return attributes;
  }

  // Adds a node, or returns an equal one: equal added nodes are added once (the k roots of a family
  // share an operator), and nodes of the graph are reused. Roots are not reused: their readers will
  // read the target, which would then read itself.
  StatusOr<NodeId> Add(OpKind op, const std::vector<Edge>& operands, const Attributes& attributes) {
    const StatusOr<NodeId> id = builder_.Add(op, operands, attributes);
    if (!id.ok()) return NotHere(Message(id.status()));
    for (const NodeId other : added_) {
      if (SameNode(other, *id)) return other;
    }
    if (operands[0].node < graph_.size()) {
      for (const Use& use : graph_.uses(operands[0])) {
        if (!IsRoot(use.node) && SameNode(use.node, *id)) return use.node;
      }
    }
    added_.push_back(*id);
    return *id;
  }

  bool IsRoot(NodeId id) const {
    for (const auto& family : bindings_.roots) {
      for (const Edge& root : family) {
        if (root.node == id) return true;
      }
    }
    return false;
  }

  bool SameNode(NodeId a, NodeId b) const {
    const Node& x = builder_.node(a);
    const Node& y = builder_.node(b);
    return x.op == y.op && x.inputs == y.inputs && *x.attributes == *y.attributes;
  }

  Builder& builder_;
  const Graph& graph_;
  const RulePattern& pattern_;
  const Bindings& bindings_;
  // The values of "name:" in the target, by slot and position.
  std::map<std::pair<int, int>, Edge> named_;
  std::vector<NodeId> added_;
};

}  // namespace

Status ApplyTo(GraphBuilder* builder, const Graph& graph, const RulePattern& pattern,
               const Bindings& bindings) {
  return Applier(builder, graph, pattern, bindings).Run();
}

Status ApplyTo(GraphPatch* patch, const RulePattern& pattern, const Bindings& bindings) {
  return Applier(patch, patch->base(), pattern, bindings).Run();
}

}  // namespace ag
