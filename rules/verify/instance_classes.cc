#include "rules/verify/instance_classes.h"

#include <algorithm>
#include <map>
#include <vector>

namespace ag {
namespace {

using Classes = std::set<std::string>;

bool AllSame(const Ints& values) {
  return std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == values[0]; });
}

void WindowClasses(const Graph& graph, const Node& node, Classes* classes) {
  const auto above_one = [](int64_t value) { return value > 1; };
  const Ints& pads = node.IntList("pads");
  const auto half = static_cast<std::ptrdiff_t>(pads.size() / 2);
  if (std::any_of(node.IntList("strides").begin(), node.IntList("strides").end(), above_one)) {
    classes->insert("strided");
  }
  if (std::any_of(node.IntList("dilations").begin(), node.IntList("dilations").end(), above_one)) {
    classes->insert("dilated");
  }
  if (!std::equal(pads.begin(), pads.begin() + half, pads.begin() + half)) {
    classes->insert("asymmetric pads");
  }
  if (graph.type(node.inputs[0]).shape[0] > 1) classes->insert("batch > 1");
  if (node.op != OpKind::kConv || node.Int("group") == 1) return;
  classes->insert("group > 1");
  if (graph.type(node.inputs[1]).shape[1] == 1) classes->insert("depthwise");
}

bool HasUnevenCuts(const Graph& graph, const Node& node) {
  if (node.op == OpKind::kSplit) return !AllSame(node.IntList("sizes"));
  Ints sizes;
  for (const Edge& x : node.inputs) sizes.push_back(graph.type(x).shape[node.Int("axis")]);
  return !AllSame(sizes);
}

bool IsBatched(const Graph& graph, const Node& node) {
  const Shape& shape = node.outputs[0].shape;
  if (node.op == OpKind::kBatchNorm) return graph.type(node.inputs[0]).shape[0] > 1;
  return std::any_of(shape.begin(), shape.end() - 2, [](int64_t dim) { return dim > 1; });
}

bool IsElementwiseOfMany(OpKind op) { return Has(op, kBinary) || op == OpKind::kWhere; }

bool Broadcasts(const Graph& graph, const Node& node) {
  return std::any_of(node.inputs.begin(), node.inputs.end(), [&](const Edge& x) {
    return graph.type(x).shape != graph.type(node.inputs[0]).shape;
  });
}

void NodeClasses(const Graph& graph, const Node& node, Classes* classes) {
  if (node.op == OpKind::kConv || Has(node.op, kPooling)) WindowClasses(graph, node, classes);
  if ((node.op == OpKind::kSplit || node.op == OpKind::kConcat) && HasUnevenCuts(graph, node)) {
    classes->insert("uneven cuts");
  }
  if ((node.op == OpKind::kMatMul || node.op == OpKind::kBatchNorm) && IsBatched(graph, node)) {
    classes->insert("batch > 1");
  }
  if (IsElementwiseOfMany(node.op) && Broadcasts(graph, node)) classes->insert("broadcast");
}

void TypeClasses(const TensorType& type, Classes* classes) {
  const Shape& shape = type.shape;
  if (std::find(shape.begin(), shape.end(), 1) != shape.end()) classes->insert("axis of size 1");
  if (shape.empty()) classes->insert("scalar");
  if (IsInteger(type.dtype)) classes->insert("integers");
}

// ---- The classes that apply.

// Facts about shapes without sampling: terms with equal keys have equal shapes.
class ShapeKeys {
 public:
  explicit ShapeKeys(const RulePattern& pattern) {
    for (const Guard& guard : pattern.guards) JoinSameShapes(guard.value);
  }

  std::string Of(const Term& term) {
    if (term.kind == Term::Kind::kScalar) return "";  // Fits any shape.
    if (term.kind == Term::Kind::kVariable) return Leader(SlotKey(term.slot, term.indexed));
    if (term.slot >= 0 && joined_.contains(SlotKey(term.slot, term.indexed))) {
      return Leader(SlotKey(term.slot, term.indexed));
    }
    std::vector<std::string> keys;
    for (const Term& operand : term.operands) {
      if (operand.spread) return Fresh();
      keys.push_back(Of(operand));
    }
    const bool keeps =
        term.op_class == kUnary || term.op_class == kZeroToZero ||
        (term.op_class == 0 && (Has(term.op, kUnary) || Has(term.op, kNormalization)));
    if (keeps) return keys[0];
    if (term.op_class == kBinary || (term.op_class == 0 && IsElementwiseOfMany(term.op))) {
      return OfElementwise(keys);
    }
    // The same operator with the same attributes on the same shapes has an equal key.
    if (term.label.empty() && !Info(term.op).attributes.empty()) return Fresh();
    if (term.output_choice != OutputChoice::kOnly) return Fresh();
    if (term.op_class == 0 && term.op == OpKind::kConv) keys.pop_back();  // The bias.
    return fmt::format("{}.{}({})", static_cast<int>(term.op), term.label, fmt::join(keys, ","));
  }

 private:
  static std::string SlotKey(int slot, bool indexed) {
    return fmt::format("{}{}", indexed ? "i" : "s", slot);
  }
  std::string Fresh() { return fmt::format("?{}", fresh_++); }

  std::string OfElementwise(const std::vector<std::string>& keys) {
    std::string key;
    for (const std::string& operand : keys) {
      if (operand.empty() || operand == key) continue;
      if (!key.empty()) return Fresh();
      key = operand;
    }
    return key;
  }

  std::string Leader(const std::string& key) {
    const auto found = joined_.find(key);
    return found == joined_.end() || found->second == key ? key : Leader(found->second);
  }

  void JoinSameShapes(const Expression& e) {
    if (e.kind != Expression::Kind::kCall || e.name != "same_shape") return;
    std::string first;
    for (const Expression& argument : e.arguments) {
      if (argument.kind != Expression::Kind::kVariable) continue;
      const std::string key = SlotKey(argument.slot, argument.indexed);
      joined_.emplace(key, key);
      if (first.empty()) first = Leader(key);
      joined_[Leader(key)] = first;
    }
  }

  std::map<std::string, std::string> joined_;
  int fresh_ = 0;
};

class Applicable {
 public:
  explicit Applicable(const RulePattern& pattern) : keys_(pattern) {
    for (const Term& source : pattern.sources) CloseLabels(source);
    for (const Term& source : pattern.sources) Visit(source, kAnyRank);
  }
  Classes classes = {"axis of size 1"};

 private:
  // Whether any value may come: the attribute is not mentioned, or bound to a plain name. Terms of
  // one label share a mention.
  bool IsOpen(const Term& term, const std::string& name) const {
    for (const AttributeTerm& attribute : term.attributes) {
      if (attribute.name == name && attribute.value.kind != Expression::Kind::kVariable)
        return false;
    }
    return term.label.empty() || !closed_.contains({term.label, name});
  }

  void CloseLabels(const Term& term) {
    for (const AttributeTerm& attribute : term.attributes) {
      if (term.label.empty() || attribute.value.kind == Expression::Kind::kVariable) continue;
      closed_.emplace(term.label, attribute.name);
    }
    for (const Term& operand : term.operands) CloseLabels(operand);
  }

  static constexpr size_t kAnyRank = 99;

  // Returns the rank that a literal perm gives a transpose and its operand.
  static size_t RankOf(const Term& term) {
    for (const AttributeTerm& attribute : term.attributes) {
      const bool list = attribute.value.kind == Expression::Kind::kList && attribute.literal;
      if (attribute.name == "perm" && list) return attribute.value.arguments.size();
    }
    return kAnyRank;
  }

  // `rank_max`: the greatest rank of the term's value that its readers allow.
  void Visit(const Term& term, size_t rank_max) {
    if (term.kind != Term::Kind::kOperator) return;
    const bool one = term.op_class == 0;
    const bool conv = one && term.op == OpKind::kConv;
    const bool pool = one ? Has(term.op, kPooling) : term.op_class == kPooling;
    if (conv || pool) Window(term);
    if (conv && IsOpen(term, "group")) {
      classes.insert("group > 1");
      classes.insert("depthwise");
    }
    if (one && ((term.op == OpKind::kMatMul && rank_max > 2) || term.op == OpKind::kBatchNorm)) {
      classes.insert("batch > 1");
    }
    if (one && term.op == OpKind::kSplit && term.output_choice == OutputChoice::kEach &&
        IsOpen(term, "sizes")) {
      classes.insert("uneven cuts");
    }
    if (one && term.op == OpKind::kConcat && !SameOperands(term)) classes.insert("uneven cuts");
    const bool many = one ? IsElementwiseOfMany(term.op) : term.op_class == kBinary;
    if (many && !SameOperands(term)) classes.insert("broadcast");
    const size_t rank = one && term.op == OpKind::kTranspose ? RankOf(term) : kAnyRank;
    for (const Term& operand : term.operands) Visit(operand, rank);
  }

  void Window(const Term& term) {
    if (IsOpen(term, "strides")) classes.insert("strided");
    if (IsOpen(term, "dilations")) classes.insert("dilated");
    if (IsOpen(term, "pads")) classes.insert("asymmetric pads");
    classes.insert("batch > 1");
  }

  bool SameOperands(const Term& term) {
    std::set<std::string> keys;
    for (const Term& operand : term.operands) {
      if (operand.spread) return false;
      const std::string key = keys_.Of(operand);
      if (!key.empty()) keys.insert(key);
    }
    return keys.size() <= 1;
  }

  ShapeKeys keys_;
  std::set<std::pair<std::string, std::string>> closed_;  // Label and attribute.
};

}  // namespace

std::set<std::string> ClassesOf(const Graph& graph, std::span<const NodeId> nodes) {
  Classes classes;
  std::set<NodeId> distinct(nodes.begin(), nodes.end());
  if (graph.outputs().size() >= 3) classes.insert("three or more roots");
  for (const NodeId id : distinct) {
    const Node& node = graph.node(id);
    NodeClasses(graph, node, &classes);
    for (const TensorType& type : node.outputs) TypeClasses(type, &classes);
    for (const Edge& x : node.inputs) {
      if (!graph.type(x).shape.empty()) TypeClasses(graph.type(x), &classes);
    }
  }
  return classes;
}

std::set<std::string> ApplicableClasses(const RulePattern& pattern) {
  return Applicable(pattern).classes;
}

}  // namespace ag
